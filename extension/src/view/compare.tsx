import React, { useState } from 'react';

import { useUi } from '../model/ui';
import { shortRef } from '../model/format';
import { DiffPane } from './diff';

/** Two refs of one lab, side by side. */
export function ComparePage(props: {
  target: { lab: string; base: string; head: string };
}): JSX.Element {
  const { trans, href } = useUi();
  const { lab, base, head } = props.target;
  const title = trans.__('%1 beside %2', shortRef(base), shortRef(head));
  return (
    <article className="jp-harnesslab-Page" aria-label={title}>
      <header className="jp-harnesslab-Headline">
        <h2>{title}</h2>
        <p>
          <a href={href(props.target)}>{trans.__('Link to this page')}</a>
        </p>
      </header>
      <CompareForm lab={lab} base={base} head={head} />
      <DiffPane lab={lab} base={base} head={head} />
    </article>
  );
}

/** Choose any two refs to compare. */
export function CompareForm(props: { lab: string; base: string; head: string }): JSX.Element {
  const { trans, open } = useUi();
  const [base, setBase] = useState(props.base);
  const [head, setHead] = useState(props.head);
  return (
    <form
      className="jp-harnesslab-Compare"
      aria-label={trans.__('Compare two refs')}
      onSubmit={event => {
        event.preventDefault();
        open({ lab: props.lab, base, head });
      }}
    >
      <label>
        {trans.__('Compare')}{' '}
        <input
          className="jp-harnesslab-Input"
          value={base}
          required
          maxLength={250}
          onChange={event => setBase(event.target.value.trim())}
        />
      </label>{' '}
      <label>
        {trans.__('with')}{' '}
        <input
          className="jp-harnesslab-Input"
          value={head}
          required
          maxLength={250}
          onChange={event => setHead(event.target.value.trim())}
        />
      </label>{' '}
      <button className="jp-harnesslab-Button" type="submit">
        {trans.__('Compare')}
      </button>
    </form>
  );
}
