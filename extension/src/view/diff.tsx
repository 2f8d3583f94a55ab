import { MergeView } from '@codemirror/merge';
import { EditorState, Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { IEditorLanguageRegistry, jupyterTheme } from '@jupyterlab/codemirror';
import React, { useEffect, useRef } from 'react';

import type { DiffFile } from '../api';
import { shortRef } from '../model/format';
import { useAnswer } from '../model/hooks';
import { useUi } from '../model/ui';
import { ErrorNote, Loading } from '../sidebar/messages';

/** The files that differ between two commits, each side by side; `named` says which commits these are. */
export function DiffPane(props: {
  lab: string;
  base: string;
  head: string;
  named?: boolean;
}): JSX.Element {
  const { trans, client } = useUi();
  const { lab, base, head, named } = props;
  const { value, error } = useAnswer(() => client.diff(lab, base, head), `${lab} ${base} ${head}`);
  if (error !== null) {
    return <ErrorNote error={error} />;
  }
  if (!value) {
    return <Loading />;
  }
  return (
    <div className="jp-harnesslab-Diff">
      {named && (
        <dl className="jp-harnesslab-Facts">
          <dt>{trans.__('Left')}</dt>
          <dd>
            <code>{shortRef(value.base.commit)}</code> {value.base.subject}
          </dd>
          <dt>{trans.__('Right')}</dt>
          <dd>
            <code>{shortRef(value.head.commit)}</code> {value.head.subject}
          </dd>
        </dl>
      )}
      {value.files.length === 0 && <p>{trans.__('No file differs.')}</p>}
      {value.files.map(file => (
        <FileDiff key={file.path} file={file} />
      ))}
      {value.truncated && <p role="note">{trans.__('More files differ than are shown.')}</p>}
    </div>
  );
}

function FileDiff(props: { file: DiffFile }): JSX.Element {
  const { trans, languages } = useUi();
  const { file } = props;
  const host = useRef<HTMLDivElement>(null);
  const words = {
    added: trans.__('added'),
    deleted: trans.__('deleted'),
    modified: trans.__('modified')
  };
  const before = trans.__('%1 before', file.path);
  const after = trans.__('%1 after', file.path);
  useEffect(() => {
    let view: MergeView | null = null;
    let gone = false;
    void languageOf(languages, file.path).then(language => {
      if (!gone && host.current) {
        view = mergeView(host.current, file, language, before, after);
      }
    });
    return () => {
      gone = true;
      view?.destroy();
    };
  }, [file, languages, before, after]);
  return (
    <figure className="jp-harnesslab-File" data-path={file.path}>
      <figcaption>
        <code>{file.path}</code> <span className="jp-harnesslab-Meta">{words[file.status]}</span>
      </figcaption>
      {file.binary ? (
        <p>{trans.__('A binary file; its content is not shown.')}</p>
      ) : (
        <div ref={host} className="jp-harnesslab-Merge" />
      )}
      {file.truncated && <p role="note">{trans.__('The file is long and was cut here.')}</p>}
    </figure>
  );
}

async function languageOf(
  languages: IEditorLanguageRegistry | null,
  path: string
): Promise<Extension> {
  const spec = languages?.findByFileName(path);
  // A language that cannot be loaded costs the colours, not the diff.
  const loaded = spec ? await languages?.getLanguage(spec).catch(() => null) : null;
  return loaded?.support ?? [];
}

function mergeView(
  parent: HTMLElement,
  file: DiffFile,
  language: Extension,
  before: string,
  after: string
): MergeView {
  const side = (label: string): Extension => [
    jupyterTheme,
    language,
    lineNumbers(),
    EditorState.readOnly.of(true),
    EditorView.lineWrapping,
    // Read-only but focusable, so that the text can be reached and selected with the keyboard.
    EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true' })
  ];
  return new MergeView({
    parent,
    a: { doc: file.base_text, extensions: side(before) },
    b: { doc: file.head_text, extensions: side(after) },
    gutter: true,
    // Of a file that is new or gone all is changed; to underline every word of it would only be noise.
    highlightChanges: file.status === 'modified',
    collapseUnchanged: { margin: 3, minSize: 6 },
    // Texts of others: never let a diff hang the page.
    diffConfig: { scanLimit: 1000, timeout: 200 }
  });
}
