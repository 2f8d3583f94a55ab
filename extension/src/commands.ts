import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { ActionName } from './api';
import { labIcon } from './icons';
import { CommandIDs, actCommand } from './ids';
import type { Target } from './model/links';
import type { Session } from './model/session';
import { IActWords, actWords } from './model/vocabulary';
import type { Views } from './view/views';

const TARGET = {
  type: 'object',
  properties: {
    lab: { type: 'string', description: 'Path of the lab below the Jupyter root' },
    ref: { type: 'string', description: 'A full ref name or a commit' }
  }
} as const;

/** Register every command; the palette, the menu and the shortcuts all lead to these. */
export function addCommands(options: {
  app: JupyterFrontEnd;
  session: Session;
  views: Views;
  trans: TranslationBundle;
  palette: ICommandPalette | null;
}): void {
  const { app, session, views, trans, palette } = options;
  const { commands } = app;
  const { ui } = views;
  const nothing = { args: { type: 'object', properties: {} } };
  const hasLab = () => session.lab !== null;

  commands.addCommand(CommandIDs.show, {
    label: trans.__('Show Harness Labs'),
    caption: trans.__('Show the sidebar with the labs, their baselines and candidates'),
    icon: labIcon,
    describedBy: nothing,
    execute: () => app.shell.activateById('harnesslab-sidebar')
  });
  commands.addCommand(CommandIDs.refresh, {
    label: trans.__('Refresh Labs'),
    icon: refreshIcon,
    describedBy: nothing,
    execute: async () => {
      await session.findLabs();
      await session.refresh();
    }
  });
  commands.addCommand(CommandIDs.chooseLab, {
    label: trans.__('Choose a Lab by Path…'),
    describedBy: nothing,
    execute: () => ui.chooseLab()
  });
  commands.addCommand(CommandIDs.openFolder, {
    label: trans.__('Open the Lab’s Folder'),
    describedBy: nothing,
    isEnabled: hasLab,
    execute: () => session.lab !== null && ui.openFolder(session.lab)
  });
  commands.addCommand(actCommand('undo'), {
    label: () => trans.__('Undo the Last Decision…'),
    describedBy: nothing,
    isEnabled: () => Boolean(session.overview?.undo),
    execute: () => {
      const undo = session.overview?.undo;
      return session.lab !== null && undo && ui.act('undo', session.lab, undo.ref);
    }
  });
  commands.addCommand(CommandIDs.openRef, {
    label: trans.__('Open Candidate'),
    describedBy: { args: TARGET },
    execute: args => {
      const target = args as unknown as Target;
      if (target.lab) {
        views.open(target);
        return;
      }
      const row = chosen(args);
      return row && views.open(row);
    }
  });
  commands.addCommand(CommandIDs.compare, {
    label: trans.__('Compare Two Refs…'),
    describedBy: nothing,
    isEnabled: hasLab,
    execute: async () => {
      const { lab } = session;
      if (lab === null) {
        return;
      }
      // To start with: what the newest promotion has changed. The form in the view takes any other two.
      const { items } = await session.client.history(lab, 0, 2);
      views.open({ lab, base: items.at(1)?.commit ?? 'HEAD', head: 'HEAD' });
    }
  });
  commands.addCommand(CommandIDs.compareBaseline, {
    label: trans.__('Compare with the Baseline'),
    describedBy: { args: TARGET },
    isEnabled: args => chosen(args) !== null,
    execute: args => {
      const row = chosen(args);
      return row && views.open({ lab: row.lab, base: 'HEAD', head: row.ref });
    }
  });

  // Undo has a command of its own, for the last decision whatever is chosen.
  const acts = Object.entries(actWords(trans)) as [ActionName, IActWords][];
  for (const [action, words] of acts) {
    if (action === 'undo') {
      continue;
    }
    commands.addCommand(actCommand(action), {
      label: trans.__('%1…', words.title),
      describedBy: { args: TARGET },
      isEnabled: args => chosen(args) !== null,
      execute: args => {
        const row = chosen(args);
        return row && ui.act(action, row.lab, row.ref);
      }
    });
  }
  commands.addCommand(CommandIDs.copyCell, {
    label: trans.__('Copy Candidate as Notebook Cell'),
    describedBy: { args: TARGET },
    isEnabled: args => chosen(args) !== null,
    execute: args => {
      const row = chosen(args);
      return row && ui.copyCell(row.lab, row.ref);
    }
  });
  commands.addCommand(CommandIDs.export, {
    label: trans.__('Export Harness as Zip'),
    describedBy: { args: TARGET },
    isEnabled: args => chosen(args) !== null,
    execute: args => {
      const row = chosen(args);
      return row && ui.exportZip(row.lab, row.ref);
    }
  });

  // The candidate that a command is about: the one named, the one under the pointer, or the one in view.
  function chosen(args: ReadonlyPartialJSONObject): { lab: string; ref: string } | null {
    if (typeof args.lab === 'string' && typeof args.ref === 'string') {
      return { lab: args.lab, ref: args.ref };
    }
    const hit = app.contextMenuHitTest(node => Boolean(node.dataset.lab && node.dataset.ref));
    if (hit) {
      return { lab: hit.dataset.lab ?? '', ref: hit.dataset.ref ?? '' };
    }
    const target = views.current?.target;
    return target && 'ref' in target ? target : null;
  }

  if (palette) {
    const category = trans.__('Harness');
    for (const command of [...Object.values(CommandIDs), ...acts.map(([act]) => actCommand(act))]) {
      if (command !== CommandIDs.route && command !== CommandIDs.openRef) {
        palette.addItem({ command, category });
      }
    }
  }
}
