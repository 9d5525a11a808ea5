import { Paper, SimpleGrid, Skeleton, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Compact, Money } from '../../figures/figure';
import { change, percent } from '../../figures/numbers';
import { nanoOf } from '../../figures/money';
import { shortTime } from '../../figures/times';
import type { TimeRange } from '../../url/time-range';
import type { UsageSums } from '../../usage/metrics';
import classes from './cards.module.css';

type Totals = UsageSums | null | undefined;

/** The four figures of the range, each with its change since the range before. */
export function Cards({ totals, previous, range }: { totals: Totals; previous: Totals; range: TimeRange }) {
  const before = `${shortTime(range.previous.from, range.zone)} – ${shortTime(range.previous.to, range.zone)}`;
  const unpriced = totals?.unpriced_calls ?? 0;
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="md">
      <Card
        title="Cost"
        value={totals && <Money usd={totals.cost_usd ?? '0'} />}
        change={
          totals && previous && change(Number(nanoOf(totals.cost_usd)), Number(nanoOf(previous.cost_usd)))
        }
        before={before}
        note={unpriced > 0 ? `without ${unpriced.toLocaleString('en-US')} unpriced calls` : undefined}
      />
      <Card
        title="Calls"
        value={totals && <Compact value={totals.calls} />}
        change={totals && previous && change(totals.calls, previous.calls)}
        before={before}
      />
      <Card
        title="Tokens"
        value={totals && <Compact value={totals.total_tokens} />}
        change={totals && previous && change(totals.total_tokens, previous.total_tokens)}
        before={before}
        note={
          totals && totals.total_tokens > 0
            ? `${percent(totals.cached_tokens, totals.prompt_tokens)} of the input from cache`
            : undefined
        }
      />
      <Card
        title="Error rate"
        value={
          totals && <span data-exact={String(totals.errors)}>{percent(totals.errors, totals.calls)}</span>
        }
        change={
          totals && previous && previous.calls > 0 && totals.calls > 0
            ? change(totals.errors / totals.calls, previous.errors / previous.calls)
            : undefined
        }
        before={before}
        moreIsWorse
        note={totals ? `${totals.errors.toLocaleString('en-US')} failed calls` : undefined}
      />
    </SimpleGrid>
  );
}

interface CardProps {
  title: string;
  value: ReactNode;
  change: { text: string; direction: -1 | 0 | 1 } | null | undefined;
  /** The range that `change` compares with. */
  before: string;
  note?: string;
  moreIsWorse?: boolean;
}

function Card({ title, value, change: by, before, note, moreIsWorse = false }: CardProps) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Text size="sm" c="dimmed">
        {title}
      </Text>
      {value === null || value === undefined ? (
        <Skeleton height={34} width={120} my={4} />
      ) : (
        <div className={classes.value}>{value}</div>
      )}
      <Text size="xs" c="dimmed" mih="1.2em">
        {by !== null && by !== undefined && (
          <span
            title={`Compared with ${before}`}
            data-worse={(moreIsWorse && by.direction > 0) || undefined}
            className={classes.change}
          >
            {by.text}
          </span>
        )}
        {by !== null && by !== undefined && <span> vs. previous</span>}
        {note !== undefined && (
          <span>
            {by ? ' · ' : ''}
            {note}
          </span>
        )}
      </Text>
    </Paper>
  );
}
