import { refreshIcon, folderIcon } from '@jupyterlab/ui-components';
import React from 'react';

import { shortPath } from '../model/format';
import type { Session } from '../model/session';
import { useUi } from '../model/ui';

/** Which lab, its folder, and a fresh look at it. */
export function Header(props: { session: Session }): JSX.Element {
  const { trans, chooseLab, openFolder } = useUi();
  const { session } = props;
  const found = session.labs?.items ?? [];
  const strayed = session.lab !== null && !found.some(item => item.path === session.lab);
  const paths = found.map(item => item.path);
  const pick = (path: string) => (path === '' ? chooseLab() : void session.choose(path));
  return (
    <div className="jp-harnesslab-Header">
      <select
        className="jp-harnesslab-Select"
        aria-label={trans.__('Lab')}
        value={session.lab ?? ''}
        title={session.lab ?? undefined}
        onFocus={() => void session.searchAgain()}
        onChange={event => pick(event.target.value)}
      >
        {strayed && (
          <option value={session.lab ?? ''}>{shortPath(session.lab ?? '', paths)}</option>
        )}
        {found.map(item => (
          <option key={item.path} value={item.path} title={item.path}>
            {shortPath(item.path, paths)}
          </option>
        ))}
        <option value="">{trans.__('Choose by path…')}</option>
      </select>
      <button
        className="jp-harnesslab-IconButton"
        aria-label={trans.__('Open the folder of the lab in the file browser')}
        title={trans.__('Open the folder of the lab in the file browser')}
        disabled={session.lab === null}
        onClick={() => session.lab !== null && openFolder(session.lab)}
      >
        <folderIcon.react tag="span" aria-hidden="true" />
      </button>
      <button
        className="jp-harnesslab-IconButton"
        aria-label={trans.__('Refresh')}
        title={trans.__('Refresh')}
        aria-busy={session.busy}
        onClick={() => void session.findLabs().then(() => session.refresh())}
      >
        <refreshIcon.react tag="span" aria-hidden="true" />
      </button>
    </div>
  );
}
