import { Paper, SimpleGrid, Skeleton, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Compact, Money } from '../../figures/figure';
import { change, changeInPoints, counted, percent } from '../../figures/numbers';
import { nanoOf } from '../../figures/money';
import { shortTime } from '../../figures/times';
import type { TimeRange } from '../../url/time-range';
import type { UsageSums } from '../../usage/metrics';
import { UnknownCost } from '../../usage/unknown-cost';
import classes from './cards.module.css';

type Totals = UsageSums | null | undefined;

/** The four figures of the range, each with its change since the range before. */
export function Cards({ totals, previous, range }: { totals: Totals; previous: Totals; range: TimeRange }) {
  const before = `${shortTime(range.previous.from, range.zone)} – ${shortTime(range.previous.to, range.zone)}`;
  // Calls without a cost make the sum unknown; without any calls that could have one, nothing was spent.
  const isUnknown = totals?.cost_usd === null && totals.unpriced_calls + totals.unknown_calls > 0;
  const cost = isUnknown ? null : (totals?.cost_usd ?? '0');
  const comparison = { with: range.comparedWith, bounds: before };
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing={{ base: 'xs', sm: 'md' }}>
      <Card
        title="Cost"
        value={totals && <Money usd={cost} />}
        change={
          totals &&
          previous &&
          !isUnknown &&
          change(Number(nanoOf(totals.cost_usd)), Number(nanoOf(previous.cost_usd)))
        }
        comparison={comparison}
        note={<UnknownCost sums={totals} />}
      />
      <Card
        title="Calls"
        value={totals && <Compact value={totals.calls} />}
        change={totals && previous && change(totals.calls, previous.calls)}
        comparison={comparison}
      />
      <Card
        title="Tokens"
        value={totals && <Compact value={totals.total_tokens} />}
        change={totals && previous && change(totals.total_tokens, previous.total_tokens)}
        comparison={comparison}
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
            ? changeInPoints(totals.errors / totals.calls, previous.errors / previous.calls)
            : undefined
        }
        comparison={comparison}
        moreIsWorse
        note={totals && totals.errors > 0 ? counted(totals.errors, 'failed call') : undefined}
      />
    </SimpleGrid>
  );
}

interface CardProps {
  title: string;
  value: ReactNode;
  change: { text: string; direction: -1 | 0 | 1 } | false | null | undefined;
  /** The range that `change` compares with. */
  comparison: { with: string; bounds: string };
  note?: ReactNode;
  moreIsWorse?: boolean;
}

function Card({ title, value, change: by, comparison, note, moreIsWorse = false }: CardProps) {
  return (
    <Paper withBorder p={{ base: 'xs', sm: 'md' }} component="section" aria-label={title}>
      <Text fz={{ base: 'xs', sm: 'sm' }} c="dimmed">
        {title}
      </Text>
      {value === null || value === undefined ? (
        <Skeleton height={34} width={120} maw="100%" my={4} />
      ) : (
        <div className={classes.figure}>
          <div className={classes.value}>{value}</div>
        </div>
      )}
      <Text size="xs" c="dimmed" mih="1.2em" component="div">
        {by && (
          <div title={`Compared with ${comparison.bounds}`}>
            <span data-worse={(moreIsWorse && by.direction > 0) || undefined} className={classes.change}>
              <span aria-hidden="true">{ARROWS[by.direction]}</span> {by.text}
            </span>{' '}
            vs. {comparison.with}
          </div>
        )}
        {note}
      </Text>
    </Paper>
  );
}

const ARROWS = { [-1]: '↓', 0: '', 1: '↑' };
