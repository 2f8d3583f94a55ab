import React from 'react';

import type { Target } from '../model/links';
import { useUi } from '../model/ui';

/** A link to a view. A click copies its address, since following it would load JupyterLab anew. */
export function CopyLink(props: { target: Target }): JSX.Element {
  const { trans, href, copyLink } = useUi();
  const { target } = props;
  return (
    <a
      href={href(target)}
      title={trans.__(
        'Copy the address of this page; it opens in a new tab with the middle button'
      )}
      onClick={event => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
          event.preventDefault();
          copyLink(target);
        }
      }}
    >
      {trans.__('Copy link')}
    </a>
  );
}
