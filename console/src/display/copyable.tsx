import { ActionIcon, Code, CopyButton, Group, Text, Tooltip } from '@mantine/core';
import type { ReactNode } from 'react';
import { CheckIcon, CopyIcon } from './icons';

/** A button that copies a text and says so. `what` names it: "Copy request ID". */
export function CopyAction({ text, what, size = 24 }: { text: string; what: string; size?: number }) {
  return (
    <CopyButton value={text} timeout={1_500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : `Copy ${what}`}>
          <ActionIcon
            size={size}
            variant="subtle"
            color={copied ? 'teal' : 'gray'}
            aria-label={copied ? 'Copied' : `Copy ${what}`}
            onClick={(event) => {
              event.stopPropagation();
              copy();
            }}
          >
            {copied ? <CheckIcon size={14} /> : <CopyIcon size={14} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

/** An ID in monospace with a copy button; shortened in lists, whole on hover. */
export function CopyableId({
  id,
  what = 'ID',
  short = false,
}: {
  id: string;
  what?: string;
  short?: boolean;
}) {
  return (
    <Group gap={2} wrap="nowrap" style={{ display: 'inline-flex', maxWidth: '100%' }}>
      <Text span ff="monospace" size="sm" title={id} style={{ overflowWrap: 'anywhere' }}>
        {short && id.length > 13 ? `${id.slice(0, 6)}…${id.slice(-6)}` : id}
      </Text>
      <CopyAction text={id} what={what} />
    </Group>
  );
}

/** A block of text to paste into a terminal or a program. */
export function Snippet({ text, what, children }: { text: string; what: string; children?: ReactNode }) {
  return (
    <div style={{ position: 'relative' }}>
      <Code
        block
        tabIndex={0}
        pr={44}
        // A secret is shown whole; lines of a command stay lines.
        style={
          text.includes('\n')
            ? { whiteSpace: 'pre', overflowX: 'auto' }
            : { whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }
        }
        aria-label={what}
        role="region"
      >
        {children ?? text}
      </Code>
      <div
        style={{
          position: 'absolute',
          top: 6,
          right: 6,
          borderRadius: 'var(--mantine-radius-sm)',
          background: 'var(--mantine-color-body)',
        }}
      >
        <CopyAction text={text} what={what} />
      </div>
    </div>
  );
}
