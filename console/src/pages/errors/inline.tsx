import { Code } from '@mantine/core';
import { Fragment, type ReactNode } from 'react';

const PARTS = /`([^`]+)`|\[([^\]]+)\]\(([^)]+)\)/g;

/** Text with its code and links. No gateway serves the other documents, so a link says where they are. */
export function Inline({ text }: { text: string }): ReactNode {
  const parts: ReactNode[] = [];
  let end = 0;
  for (const { 0: whole, 1: code, 2: label, 3: target, index } of text.matchAll(PARTS)) {
    parts.push(plain(text.slice(end, index)));
    parts.push(
      code !== undefined ? (
        <Code>{code}</Code>
      ) : (
        <>
          <Inline text={label!} /> (<Code>{pathOf(target!)}</Code>)
        </>
      ),
    );
    end = index + whole.length;
  }
  parts.push(plain(text.slice(end)));
  return parts.map((part, index) => <Fragment key={index}>{part}</Fragment>);
}

/** Without the backslashes that keep Markdown from reading a character. */
function plain(text: string): string {
  return text.replace(/\\(\W)/g, '$1');
}

/** Of a file beside docs/reference/errors.md. */
function pathOf(target: string): string {
  return new URL(target.replace(/#.*/, ''), 'file:///docs/reference/').pathname.slice(1);
}
