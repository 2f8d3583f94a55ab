import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import {
  Clipboard,
  InputDialog,
  MainAreaWidget,
  Notification,
  WidgetTracker,
  showErrorMessage
} from '@jupyterlab/apputils';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { Actor } from '../actions/actor';
import { download } from '../actions/download';
import { SHOWN, insertCell } from '../actions/notebook';
import type { Client } from '../api';
import { CommandIDs, NAMESPACE } from '../ids';
import { Target, targetKey, targetQuery } from '../model/links';
import type { Session } from '../model/session';
import type { IUi } from '../model/ui';
import { RefView } from './widget';

/** What the views need of JupyterLab. */
export interface ISurroundings {
  readonly app: JupyterFrontEnd;
  readonly session: Session;
  readonly trans: TranslationBundle;
  readonly client: Client;
  readonly languages: IEditorLanguageRegistry | null;
  readonly notebooks: INotebookTracker | null;
  readonly browser: IDefaultFileBrowser | null;
}

/** Opens, finds and restores the views in the main area, and gives components their way out. */
export class Views {
  constructor(private readonly _around: ISurroundings) {
    const { session, trans, client, languages } = _around;
    this._tracker = new WidgetTracker<MainAreaWidget<RefView>>({ namespace: NAMESPACE });
    this._actor = new Actor(client, trans, () => {
      void session.refresh();
      this._refresh();
    });
    session.changed.connect(() => this._follow());
    this.ui = {
      trans,
      client,
      languages,
      settings: () => session.settings,
      open: target => this.open(target),
      href: target => this.href(target),
      copyLink: target => {
        Clipboard.copyToSystem(this.href(target));
        Notification.info(trans.__('The link was copied.'), SHOWN);
      },
      act: (action, lab, ref) => void this._actor.run(action, lab, ref),
      copyCell: (lab, ref) =>
        void this._try(async () => {
          const notebook = _around.notebooks?.currentWidget?.context.path ?? '';
          const cell = await client.cell(lab, ref, notebook);
          await insertCell(_around.notebooks, cell.source, trans);
        }),
      exportZip: (lab, ref) =>
        void this._try(async () => {
          download(await client.export(lab, ref), `${fileName(lab)}-${fileName(ref)}.zip`);
        }),
      openFolder: lab => void this._try(() => this._openFolder(lab)),
      chooseLab: () => void this._try(() => this._chooseLab())
    };
  }

  readonly ui: IUi;

  /** The view that was used last. */
  get current(): RefView | null {
    return this._tracker.currentWidget?.content ?? null;
  }

  /** Show a target; a view that is open already is brought to the front. */
  open(target: Target): void {
    const { shell } = this._around.app;
    const key = targetKey(target);
    const found = this._tracker.find(view => targetKey(view.content.target) === key);
    if (found) {
      shell.activateById(found.id);
      return;
    }
    const content = new RefView(target, this.ui);
    const view = new MainAreaWidget({ content });
    view.id = `${content.id}-panel`;
    view.title.closable = true;
    void this._tracker.add(view);
    shell.add(view, 'main');
    shell.activateById(view.id);
  }

  /** The address that opens a target in a new page. */
  href(target: Target): string {
    return (
      URLExt.join(PageConfig.getUrl({ mode: 'multiple-document' })) + '?' + targetQuery(target)
    );
  }

  /** Keep open views over a reload. */
  restore(restorer: ILayoutRestorer | null): void {
    void restorer?.restore(this._tracker, {
      command: CommandIDs.openRef,
      args: view => ({ ...view.content.target }),
      name: view => targetKey(view.content.target)
    });
  }

  /** What the sidebar has seen to have changed is read again in the views, too. */
  private _follow(): void {
    const { lab, version } = this._around.session;
    if (version === '') {
      return;
    }
    if (lab === this._lab && version !== this._version) {
      this._refresh(lab);
    }
    this._lab = lab;
    this._version = version;
  }

  private _refresh(lab: string | null = null): void {
    this._tracker.forEach(({ content }) => {
      if (lab === null || content.target.lab === lab) {
        content.refresh();
      }
    });
  }

  private async _openFolder(lab: string): Promise<void> {
    const { app, browser } = this._around;
    await app.commands.execute('filebrowser:go-to-path', { path: `/${lab === '.' ? '' : lab}` });
    if (browser) {
      app.shell.activateById(browser.id);
    }
  }

  private async _chooseLab(): Promise<void> {
    const { session, trans } = this._around;
    const answer = await InputDialog.getText({
      title: trans.__('Choose a lab'),
      label: trans.__('Path of its folder, from where JupyterLab was started'),
      okLabel: trans.__('Open')
    });
    const path = answer.value?.trim().replace(/^\/+|\/+$/g, '');
    if (answer.button.accept && path) {
      await session.choose(path);
    }
  }

  private async _try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      await showErrorMessage(
        this._around.trans.__('Not done'),
        error instanceof Error ? error.message : String(error)
      );
    }
  }

  private _lab: string | null = null;
  private _version = '';
  private readonly _tracker: WidgetTracker<MainAreaWidget<RefView>>;
  private readonly _actor: Actor;
}

function fileName(text: string): string {
  return (
    text
      .split('/')
      .filter(part => part !== '' && part !== '.')
      .at(-1)
      ?.slice(0, 40) ?? 'harness'
  );
}
