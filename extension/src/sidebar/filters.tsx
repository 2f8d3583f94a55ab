import React from 'react';

import type { RefQuery } from '../api';
import { useUi } from '../model/ui';

/** The filters and the order of the list of refs. */
export function Filters(props: {
  query: RefQuery;
  change: (part: Partial<RefQuery>) => void;
}): JSX.Element {
  const { trans } = useUi();
  const { query, change } = props;
  const decided = query.state !== 'pending';
  return (
    <div className="jp-harnesslab-Filters" role="search" aria-label={trans.__('Filter the refs')}>
      <input
        type="search"
        className="jp-harnesslab-Input"
        aria-label={trans.__('Text')}
        placeholder={trans.__('Filter text')}
        value={query.text}
        maxLength={200}
        onChange={event => change({ text: event.target.value })}
      />
      <input
        type="search"
        className="jp-harnesslab-Input"
        aria-label={trans.__('Reason')}
        placeholder={trans.__('Filter reason')}
        value={query.reason}
        maxLength={200}
        onChange={event => change({ reason: event.target.value })}
      />
      <select
        className="jp-harnesslab-Select"
        aria-label={trans.__('Layer')}
        value={query.layer}
        onChange={event => change({ layer: event.target.value as RefQuery['layer'] })}
      >
        <option value="">{trans.__('All layers')}</option>
        <option value="contract">{trans.__('contract')}</option>
        <option value="skill">{trans.__('skill')}</option>
        <option value="action">{trans.__('action')}</option>
        <option value="regulation">{trans.__('regulation')}</option>
      </select>
      {decided && (
        <select
          className="jp-harnesslab-Select"
          aria-label={trans.__('Decided by')}
          value={query.decider}
          onChange={event => change({ decider: event.target.value as RefQuery['decider'] })}
        >
          <option value="">{trans.__('Anyone')}</option>
          <option value="criterion">{trans.__('Criterion')}</option>
          <option value="person">{trans.__('Person')}</option>
        </select>
      )}
      <select
        className="jp-harnesslab-Select"
        aria-label={trans.__('Order')}
        value={`${query.sort} ${query.order}`}
        onChange={event => {
          const [sort, order] = event.target.value.split(' ');
          change({ sort: sort as RefQuery['sort'], order: order as RefQuery['order'] });
        }}
      >
        <option value="time desc">{trans.__('Newest first')}</option>
        <option value="time asc">{trans.__('Oldest first')}</option>
        <option value="delta desc">{trans.__('Most gained first')}</option>
        <option value="delta asc">{trans.__('Most lost first')}</option>
      </select>
    </div>
  );
}
