import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { TranslationBundle } from '@jupyterlab/translation';
import { createContext, useContext } from 'react';

import type { ActionName, Client } from '../api';
import type { Target } from './links';
import type { ISettings } from './settings';

/** What every component may need: words, settings, the server, and the way to other views. */
export interface IUi {
  readonly trans: TranslationBundle;
  readonly client: Client;
  readonly languages: IEditorLanguageRegistry | null;
  settings(): ISettings;
  /** Open a target in the main area. */
  open(target: Target): void;
  /** The address that opens a target in a new page. */
  href(target: Target): string;
  /** Copy the address of a target, for a message to somebody else. */
  copyLink(target: Target): void;
  /** Ask for confirmation, then act. */
  act(action: ActionName, lab: string, ref: string): void;
  copyCell(lab: string, ref: string): void;
  exportZip(lab: string, ref: string): void;
  openFolder(lab: string): void;
  chooseLab(): void;
}

export const UiContext = createContext<IUi | null>(null);

/** The surroundings of the component; only below a `UiContext.Provider`. */
export function useUi(): IUi {
  const ui = useContext(UiContext);
  if (ui === null) {
    throw new Error('No UiContext.Provider above this component');
  }
  return ui;
}
