import {
  ILayoutRestorer,
  IRouter,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Client } from './api';
import { addCommands } from './commands';
import { PLUGIN_ID } from './ids';
import { keepLab, rememberedLab } from './kept';
import { addRoute } from './route';
import { Session } from './model/session';
import { readSettings } from './model/settings';
import { SidebarWidget } from './sidebar/widget';
import { Views } from './view/views';

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'Baselines, rejected refs, and what can be done with them',
  autoStart: true,
  optional: [
    ITranslator,
    ILayoutRestorer,
    IRouter,
    ICommandPalette,
    ISettingRegistry,
    INotebookTracker,
    IDefaultFileBrowser,
    IEditorLanguageRegistry,
    IStateDB
  ],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    router: IRouter | null,
    palette: ICommandPalette | null,
    registry: ISettingRegistry | null,
    notebooks: INotebookTracker | null,
    browser: IDefaultFileBrowser | null,
    languages: IEditorLanguageRegistry | null,
    state: IStateDB | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('harnesslab');
    const client = new Client(app.serviceManager.serverSettings);
    const session = new Session(client, rememberedLab(state));
    keepLab(session, state);
    const views = new Views({ app, session, trans, client, languages, notebooks, browser });
    const sidebar = new SidebarWidget(session, views.ui);
    app.shell.add(sidebar, 'left', { rank: 550, type: 'Harness labs' });

    addCommands({ app, session, views, trans, palette });
    views.restore(restorer);
    restorer?.add(sidebar, sidebar.id);
    if (router) {
      addRoute(app, router, views);
    }
    if (registry) {
      registry.load(PLUGIN_ID).then(
        settings => {
          const apply = () => {
            session.settings = readSettings(settings);
          };
          settings.changed.connect(apply);
          apply();
        },
        reason => console.error(`The settings of ${PLUGIN_ID} cannot be read`, reason)
      );
    }
  }
};

export default plugin;
