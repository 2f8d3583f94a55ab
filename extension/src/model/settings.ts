import type { ISettingRegistry } from '@jupyterlab/settingregistry';

import type { DateFormat } from './format';

/** The user's settings, with the defaults of `schema/plugin.json`. */
export interface ISettings {
  /** Seconds between two looks at the lab while the sidebar is visible. */
  readonly refreshInterval: number;
  /** Folders below the Jupyter root that are searched for labs; none means the root. */
  readonly roots: readonly string[];
  /** How many folders deep the search goes. */
  readonly searchDepth: number;
  readonly dateFormat: DateFormat;
}

export const DEFAULTS: ISettings = {
  refreshInterval: 2,
  roots: [],
  searchDepth: 3,
  dateFormat: 'relative'
};

/** Read the settings out of the registry's composite of defaults and the user's choices. */
export function readSettings(settings: ISettingRegistry.ISettings): ISettings {
  return { ...DEFAULTS, ...(settings.composite as Partial<ISettings>) };
}
