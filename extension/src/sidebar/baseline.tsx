import React from 'react';

import type { Overview } from '../api';
import { shortRef } from '../model/format';
import { useUi } from '../model/ui';
import { When } from './when';

/** The harness at the branch head: what it is, how good it is, with which backbone. */
export function BaselineCard(props: { overview: Overview }): JSX.Element {
  const { trans, act, copyCell, exportZip, open, href } = useUi();
  const { baseline, lab, dirty, undo, notices } = props.overview;
  const { score } = baseline;
  const target = { lab: lab.path, ref: baseline.commit };
  const readOnly = lab.kind !== 'lab';
  return (
    <section className="jp-harnesslab-Baseline" aria-labelledby="jp-harnesslab-baseline-title">
      <h3 id="jp-harnesslab-baseline-title">{trans.__('Baseline')}</h3>
      <p className="jp-harnesslab-Score">
        <strong>
          {score
            ? trans.__('%1 of %2 solved', score.solved, score.total)
            : trans.__('Not measured yet')}
        </strong>
        {score && <span> {trans.__('on %1', score.split)}</span>}
      </p>
      <dl className="jp-harnesslab-Facts">
        {baseline.backbone !== null && (
          <>
            <dt>{trans.__('Backbone')}</dt>
            <dd>{baseline.backbone}</dd>
          </>
        )}
        {baseline.environment !== null && (
          <>
            <dt>{trans.__('Environment')}</dt>
            <dd>{baseline.environment}</dd>
          </>
        )}
        <dt>{trans.__('Commit')}</dt>
        <dd>
          <a
            href={href(target)}
            title={baseline.subject}
            onClick={event => {
              event.preventDefault();
              open(target);
            }}
          >
            <code>{shortRef(baseline.commit)}</code>
          </a>{' '}
          {baseline.subject}
        </dd>
        <dt>{trans.__('Since')}</dt>
        <dd>
          <When stamp={baseline.when} />
        </dd>
      </dl>
      {readOnly && (
        <p role="note">
          {trans.__('Trained with harness-training; its refs are shown read-only.')}
        </p>
      )}
      {notices.map(notice => (
        <p key={notice} role="note">
          {notice}
        </p>
      ))}
      {dirty.length > 0 && (
        <p role="note" title={dirty.join('\n')}>
          {trans._n(
            '%1 file of the lab was edited and is not committed.',
            '%1 files of the lab were edited and are not committed.',
            dirty.length
          )}
        </p>
      )}
      <div className="jp-harnesslab-Buttons">
        {undo && (
          <button
            className="jp-harnesslab-Button jp-harnesslab-OneLine"
            title={undo.label}
            onClick={() => act('undo', lab.path, undo.ref)}
          >
            {trans.__('Undo: %1', undo.label)}
          </button>
        )}
        <button
          className="jp-harnesslab-Button"
          onClick={() => copyCell(lab.path, baseline.commit)}
          title={
            readOnly
              ? trans.__('Put a cell that lists these candidates into the active notebook')
              : trans.__('Put a cell that opens this lab into the active notebook')
          }
        >
          {trans.__('Copy as cell')}
        </button>
        <button
          className="jp-harnesslab-Button"
          onClick={() => exportZip(lab.path, baseline.commit)}
          title={trans.__('Save the harness as a zip file')}
        >
          {trans.__('Export zip')}
        </button>
      </div>
    </section>
  );
}
