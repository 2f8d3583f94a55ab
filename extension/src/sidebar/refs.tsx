import React, { useId, useState } from 'react';

import type { Overview, RefQuery } from '../api';
import { useSettled } from '../model/hooks';
import { useUi } from '../model/ui';
import { TABS, stateWords } from '../model/vocabulary';
import { Filters } from './filters';
import { RefList } from './reflist';

type Tab = RefQuery['state'];

/** How long typing must rest before the list is asked for, in milliseconds. */
const REST_MS = 200;

const NO_FILTER: Omit<RefQuery, 'state'> = {
  text: '',
  layer: '',
  reason: '',
  decider: '',
  sort: 'time',
  order: 'desc'
};

/** Candidates by what became of them, one tab a state. */
export function RefTabs(props: { overview: Overview }): JSX.Element {
  const { trans } = useUi();
  const { lab, counts, version } = props.overview;
  const [tab, setTab] = useState<Tab>('rejected');
  const [filter, setFilter] = useState(NO_FILTER);
  const id = useId();
  const words = stateWords(trans);
  const move = (step: number) => {
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    setTab(next);
    document.getElementById(`${id}-${next}`)?.focus();
  };
  const empty: Record<Tab, string> = {
    pending: trans.__('No candidate waits for a decision.'),
    rejected: trans.__('Nothing was rejected yet.'),
    promoted: trans.__('Nothing was promoted yet.')
  };
  const settled = useSettled(filter, REST_MS);
  // A decider that is hidden for pending refs must not filter them.
  const shown = tab === 'pending' ? { ...settled, decider: '' as const } : settled;
  const filtered = Boolean(shown.text || shown.reason || shown.layer || shown.decider);
  return (
    <section className="jp-harnesslab-Refs" aria-label={trans.__('Candidates')}>
      <div className="jp-harnesslab-Tabs" role="tablist" aria-label={trans.__('State')}>
        {TABS.map(each => (
          <button
            key={each}
            id={`${id}-${each}`}
            role="tab"
            aria-selected={each === tab}
            aria-controls={`${id}-panel`}
            tabIndex={each === tab ? 0 : -1}
            onClick={() => setTab(each)}
            onKeyDown={event => {
              if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
                event.preventDefault();
                move(event.key === 'ArrowRight' ? 1 : -1);
              }
            }}
          >
            {`${words[each].label} (${counts[each]})`}
          </button>
        ))}
      </div>
      <div
        className="jp-harnesslab-TabPanel"
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${tab}`}
      >
        <Filters
          query={{ state: tab, ...filter }}
          change={part => setFilter({ ...filter, ...part })}
        />
        <RefList
          lab={lab.path}
          query={{ state: tab, ...shown }}
          version={version}
          label={words[tab].label}
          nothing={
            filtered ? (
              <>
                <p role="status">{trans.__('No ref matches the filters.')}</p>
                <button
                  className="jp-harnesslab-Button"
                  onClick={() =>
                    setFilter({ ...NO_FILTER, sort: filter.sort, order: filter.order })
                  }
                >
                  {trans.__('Clear the filters')}
                </button>
              </>
            ) : (
              <p role="status">{empty[tab]}</p>
            )
          }
        />
      </div>
    </section>
  );
}
