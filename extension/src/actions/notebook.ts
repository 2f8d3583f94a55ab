import { Clipboard, Notification } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Without a time to close, a notification goes to the list behind the bell and nobody sees it. */
export const SHOWN = { autoClose: 5_000 } as const;

/** Put a code cell below the active one; the clipboard takes it where no notebook is open. */
export async function insertCell(
  notebooks: INotebookTracker | null,
  source: string,
  trans: TranslationBundle
): Promise<void> {
  const panel = notebooks?.currentWidget;
  if (!panel) {
    Clipboard.copyToSystem(source); // the browser's own clipboard is missing where the page came by plain HTTP
    Notification.info(
      trans.__('No notebook is open; the cell was copied to the clipboard.'),
      SHOWN
    );
    return;
  }
  await panel.context.ready;
  NotebookActions.insertBelow(panel.content);
  panel.content.activeCell?.model.sharedModel.setSource(source);
  const into = trans.__('The cell was put into %1.', panel.title.label);
  const needs = source.startsWith('%%')
    ? trans.__('It needs %load_ext harnesslab and a trainer in the cells before it.')
    : '';
  Notification.info(`${into} ${needs}`.trim(), SHOWN);
}
