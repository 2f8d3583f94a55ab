import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { ISignal, Signal } from '@lumino/signaling';
import React from 'react';

import { labIcon } from '../icons';
import { shortRef } from '../model/format';
import { Target, targetKey } from '../model/links';
import { IUi, UiContext } from '../model/ui';
import { RefPage } from './page';
import { ComparePage } from './compare';

/** One candidate, or a comparison of two refs, in the main area. */
export class RefView extends ReactWidget {
  constructor(
    readonly target: Target,
    private readonly _ui: IUi
  ) {
    super();
    const name =
      'ref' in target
        ? shortRef(target.ref)
        : `${shortRef(target.base)} … ${shortRef(target.head)}`;
    this.id = `harnesslab-view-${targetKey(target)}`;
    this.addClass('jp-harnesslab');
    this.addClass('jp-harnesslab-View');
    this.title.icon = labIcon;
    this.title.label = name;
    this.title.caption = `${target.lab}: ${name}`;
    this.title.closable = true;
  }

  /** Read everything again, because the lab has changed; a hidden view does so when it is shown. */
  refresh(): void {
    this._behind = !this.isVisible;
    if (this.isVisible) {
      this._stale.emit();
    }
  }

  /** Emitted when what is shown should be read again. */
  get stale(): ISignal<this, void> {
    return this._stale;
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    if (this._behind) {
      this.refresh();
    }
  }

  protected render(): JSX.Element {
    const setTitle = (label: string) => {
      this.title.label = label;
    };
    return (
      <UiContext.Provider value={this._ui}>
        {'ref' in this.target ? (
          <RefPage target={this.target} stale={this._stale} setTitle={setTitle} />
        ) : (
          <ComparePage target={this.target} />
        )}
      </UiContext.Provider>
    );
  }

  private _behind = false;
  private readonly _stale = new Signal<this, void>(this);
}
