import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { Plan } from '../api';

/** Asks for confirmation in words that say what git will do; resolves to the reason, or null. */
export async function confirm(
  plan: Plan,
  title: string,
  trans: TranslationBundle
): Promise<string | null> {
  const body = new PlanBody(plan, trans);
  const dialog = new Dialog<string>({
    title,
    body,
    buttons: plan.allowed
      ? [
          Dialog.cancelButton({ label: trans.__('Cancel') }),
          Dialog.okButton({ label: title, className: 'jp-harnesslab-Confirm' })
        ]
      : [Dialog.cancelButton({ label: trans.__('Close') })],
    defaultButton: 0
  });
  body.dialog = dialog;
  const result = await dialog.launch();
  return plan.allowed && result.button.accept ? (result.value ?? '') : null;
}

class PlanBody extends ReactWidget {
  constructor(
    private readonly _plan: Plan,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-harnesslab');
  }

  /** The dialog around this body. */
  dialog: Dialog<string> | null = null;

  getValue(): string {
    return this._why.trim();
  }

  protected render(): JSX.Element {
    const trans = this._trans;
    const { allowed, steps, needs_why: needsWhy, undo } = this._plan;
    return (
      <div className="jp-harnesslab-Plan">
        <p>{allowed ? trans.__('This will:') : trans.__('This cannot be done now:')}</p>
        <ul>
          {steps.map(step => (
            <li key={step}>{step}</li>
          ))}
        </ul>
        {allowed && <p>{undo ?? trans.__('This cannot be undone here.')}</p>}
        {allowed && (
          <label>
            {needsWhy ? trans.__('Reason (required)') : trans.__('Reason')}
            <textarea
              className="jp-harnesslab-Input"
              // The dialog looks for what to focus before React has drawn it.
              autoFocus
              rows={3}
              maxLength={4000}
              required={needsWhy}
              onChange={event => this._setWhy(event.target.value)}
            />
          </label>
        )}
      </div>
    );
  }

  protected onAfterAttach(): void {
    this.update();
    this._setWhy('');
  }

  private _setWhy(why: string): void {
    this._why = why;
    const button = this.dialog?.node.querySelector<HTMLButtonElement>('.jp-harnesslab-Confirm');
    if (button) {
      button.disabled = this._plan.needs_why && this.getValue() === '';
    }
  }

  private _why = '';
}
