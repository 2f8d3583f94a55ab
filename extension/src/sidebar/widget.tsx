import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';

import { labIcon } from '../icons';
import { useSignal } from '../model/hooks';
import type { Session } from '../model/session';
import { IUi, UiContext, useUi } from '../model/ui';
import { BaselineCard } from './baseline';
import { Header } from './header';
import { EmptyState, ErrorNote, Loading } from './messages';
import { Progress } from './progress';
import { RefTabs } from './refs';
import { Timeline } from './timeline';

/** The panel in the side area. It follows the lab only while it is visible. */
export class SidebarWidget extends ReactWidget {
  constructor(
    private readonly _session: Session,
    private readonly _ui: IUi
  ) {
    super();
    this.id = 'harnesslab-sidebar';
    this.addClass('jp-harnesslab');
    this.addClass('jp-harnesslab-Sidebar');
    this.title.icon = labIcon;
    this.title.caption = _ui.trans.__('Harness labs');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _ui.trans.__('Harness labs'));
  }

  protected render(): JSX.Element {
    return (
      <UiContext.Provider value={this._ui}>
        <Sidebar session={this._session} />
      </UiContext.Provider>
    );
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._session.active = true;
  }

  protected onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._session.active = false;
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    // Side panels are attached hidden; one that the layout restorer shows is visible here.
    this._session.active = this.isVisible;
  }
}

function Sidebar(props: { session: Session }): JSX.Element {
  const { trans } = useUi();
  const { session } = props;
  useSignal(session.changed);
  const { overview, labs, error, running } = session;
  if (labs === null && error === null) {
    return <Loading />;
  }
  const empty = labs?.items.length === 0 && session.lab === null;
  return (
    <>
      <h2 className="jp-harnesslab-Title">{trans.__('Harness labs')}</h2>
      {!empty && <Header session={session} />}
      {error !== null && (
        <ErrorNote
          error={error}
          retry={() => void session.findLabs().then(() => session.refresh())}
        />
      )}
      {empty && <EmptyState problems={labs.problems} />}
      {session.lab !== null && overview === null && error === null && <Loading />}
      {running && <Progress running={running} />}
      {overview && (
        <>
          <BaselineCard overview={overview} />
          <Timeline
            lab={overview.lab.path}
            version={overview.version}
            readOnly={overview.lab.kind !== 'lab'}
          />
          <RefTabs key={overview.lab.path} overview={overview} />
        </>
      )}
    </>
  );
}
