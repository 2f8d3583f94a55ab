import React, { useEffect, useId, useState } from 'react';

import type { Client } from '../api';
import { rowName, shortRef } from '../model/format';
import { useSettled } from '../model/hooks';
import { useUi } from '../model/ui';
import { TABS } from '../model/vocabulary';
import { DiffPane } from './diff';
import { CopyLink } from './link';

/** Two refs of one lab, side by side. */
export function ComparePage(props: {
  target: { lab: string; base: string; head: string };
}): JSX.Element {
  const { trans } = useUi();
  const { lab, base, head } = props.target;
  const title = trans.__('%1 beside %2', shortRef(base), shortRef(head));
  return (
    <article className="jp-harnesslab-Page" aria-label={title}>
      <header className="jp-harnesslab-Headline">
        <h2>{title}</h2>
        <p>
          <CopyLink target={props.target} />
        </p>
      </header>
      <CompareForm lab={lab} base={base} head={head} />
      <DiffPane lab={lab} base={base} head={head} named />
    </article>
  );
}

/** Choose any two refs to compare. */
export function CompareForm(props: { lab: string; base: string; head: string }): JSX.Element {
  const { trans, open } = useUi();
  const { lab } = props;
  const [base, setBase] = useState(props.base);
  const [head, setHead] = useState(props.head);
  return (
    <form
      className="jp-harnesslab-Compare"
      aria-label={trans.__('Compare two refs')}
      onSubmit={event => {
        event.preventDefault();
        open({ lab, base: base.trim(), head: head.trim() });
      }}
    >
      <RefInput lab={lab} label={trans.__('Compare')} value={base} change={setBase} />
      <RefInput lab={lab} label={trans.__('with')} value={head} change={setHead} />
      <button className="jp-harnesslab-Button" type="submit">
        {trans.__('Compare')}
      </button>
    </form>
  );
}

interface IChoice {
  readonly value: string;
  readonly label: string;
}

const REST_MS = 250;
const CHOICES = 30;

/** A field for a ref or a commit; it offers those whose name, words or reason hold what was typed. */
function RefInput(props: {
  lab: string;
  label: string;
  value: string;
  change: (value: string) => void;
}): JSX.Element {
  const { trans, client } = useUi();
  const { lab, label, value, change } = props;
  const [used, setUsed] = useState(false);
  const [choices, setChoices] = useState<readonly IChoice[]>([]);
  const typed = useSettled(value, REST_MS);
  const id = useId();
  useEffect(() => {
    let current = true;
    if (used) {
      findChoices(client, lab, typed.trim()).then(
        found => current && setChoices(found),
        () => undefined // without choices the field is still a field
      );
    }
    return () => {
      current = false;
    };
  }, [client, lab, typed, used]);
  return (
    <span className="jp-harnesslab-Field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="search"
        className="jp-harnesslab-Input"
        list={`${id}-choices`}
        value={value}
        required
        maxLength={250}
        placeholder={trans.__('A name, a ref or a commit')}
        onFocus={event => {
          setUsed(true);
          event.currentTarget.select();
        }}
        onChange={event => change(event.target.value)}
      />
      <datalist id={`${id}-choices`}>
        {choices.map(choice => (
          <option key={choice.value} value={choice.value} label={choice.label} />
        ))}
      </datalist>
    </span>
  );
}

async function findChoices(client: Client, lab: string, typed: string): Promise<IChoice[]> {
  const text = typed.slice(0, 200);
  const query = { text, layer: '', reason: '', decider: '', sort: 'time', order: 'desc' } as const;
  const [history, ...pages] = await Promise.all([
    client.history(lab, 0, CHOICES),
    ...TABS.map(state => client.refs(lab, { ...query, state }, 0, CHOICES))
  ]);
  return [
    { value: 'HEAD', label: history.items.at(0)?.subject ?? '' },
    ...pages.flatMap(({ items }) =>
      items.map(row => ({ value: row.ref, label: `${rowName(row)} (${row.state})` }))
    ),
    ...history.items.map(item => ({ value: item.commit, label: item.subject }))
  ];
}
