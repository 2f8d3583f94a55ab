import React from 'react';

import type { RefDetail } from '../api';
import { useUi } from '../model/ui';
import { actWords } from '../model/vocabulary';
import { CopyLink } from './link';

/** The buttons for what can be done with a candidate now. */
export function Actions(props: { lab: string; detail: RefDetail }): JSX.Element {
  const { trans, act, copyCell, exportZip } = useUi();
  const { lab, detail } = props;
  const { ref } = detail.row;
  const words = actWords(trans);
  return (
    <div className="jp-harnesslab-Buttons" role="group" aria-label={trans.__('Actions')}>
      {detail.actions.map(action => (
        <button
          key={action}
          className="jp-harnesslab-Button"
          data-action={action}
          onClick={() => act(action, lab, ref)}
        >
          {words[action].button}
        </button>
      ))}
      <button className="jp-harnesslab-Button" onClick={() => copyCell(lab, ref)}>
        {trans.__('Copy as cell')}
      </button>
      <button className="jp-harnesslab-Button" onClick={() => exportZip(lab, ref)}>
        {trans.__('Export zip')}
      </button>
      <CopyLink target={{ lab, ref }} />
    </div>
  );
}
