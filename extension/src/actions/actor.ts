import { Notification, showErrorMessage } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import { ActionName, Client, Problem } from '../api';
import { actWords } from '../model/vocabulary';
import { confirm } from './confirm';

/** Does what a person asked for: plan, confirm, act, say what happened, offer the undo. */
export class Actor {
  constructor(
    private readonly _client: Client,
    private readonly _trans: TranslationBundle,
    private readonly _after: (ref: string | null) => void
  ) {}

  /** Run one action through its confirmation; errors are shown, never thrown. */
  async run(action: ActionName, lab: string, ref: string): Promise<void> {
    const { title } = actWords(this._trans)[action];
    try {
      const plan = await this._client.plan(lab, action, ref);
      const why = await confirm(plan, title, this._trans);
      if (why === null) {
        return;
      }
      const done = await this._client.act({ lab, action, ref, why, expect: plan.expect });
      this._after(done.ref);
      Notification.success(done.message, {
        autoClose: 10_000,
        actions:
          done.undo === null
            ? []
            : [
                {
                  label: this._trans.__('Undo'),
                  callback: () => void this.run('undo', lab, done.undo ?? '')
                }
              ]
      });
    } catch (error) {
      this._after(null);
      const words = error instanceof Problem ? error.message : String(error);
      await showErrorMessage(this._trans.__('%1: not done', title), words);
    }
  }
}
