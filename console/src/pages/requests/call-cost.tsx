import { Alert, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, type ResponseOf } from '../../api/client';
import { exactUsd, formatUsd, nanoOf } from '../../figures/money';
import { count } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { isFromStart } from '../prices/price';
import type { Call } from './call';

type Resolution = ResponseOf<'/admin/v1/prices/resolve', 'get'>;
type Price = NonNullable<Resolution['price']>;

/** The tokens of a call, the price of each kind, and the cost that came of them. */
export function CallCost({ call }: { call: Call }) {
  const { provider, model, started_at, price_id, cost_usd, prompt_tokens } = call;
  const resolution = useQuery({
    queryKey: ['price', provider, model, started_at],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/prices/resolve', {
        query: { provider, model: model ?? '', at: started_at },
        signal,
      }),
    enabled: price_id !== null && model !== null,
    staleTime: 60_000,
  });
  if (call.outcome === 'cached') {
    return (
      <Text size="sm">
        The response came from the cache: the call cost nothing
        {call.saved_usd === null ? '.' : ` and saved ${exactUsd(nanoOf(call.saved_usd))}.`}
      </Text>
    );
  }
  if (prompt_tokens === null && call.completion_tokens === null) {
    return (
      <Text size="sm" c="dimmed">
        {call.streamed
          ? 'The provider reported no tokens. Streams report them if the request has stream_options.include_usage.'
          : 'The provider reported no tokens.'}
        {cost_usd !== null && ` It reported the cost: ${formatUsd(nanoOf(cost_usd))}.`}
      </Text>
    );
  }
  // The price in force may have changed since; the one of the row is shown only if it is the same.
  const price = resolution.data?.price?.id === price_id ? (resolution.data?.price ?? null) : null;
  const rows = tokenRows(call, price);
  return (
    <>
      <DataTable
        label="Tokens and cost"
        columns={COLUMNS}
        rows={rows}
        rowId={({ name }) => name}
        empty={null}
        totals={{
          name: 'Total',
          tokens: count((prompt_tokens ?? 0) + (call.completion_tokens ?? 0)),
          cost: (
            <span data-exact={cost_usd ?? ''}>{cost_usd === null ? '–' : exactUsd(nanoOf(cost_usd))}</span>
          ),
        }}
      />
      <Text size="xs" c="dimmed" mt={6}>
        {sourceOf(call, price)}
      </Text>
      {resolution.error !== null && (
        <Alert color="red" variant="outline" mt="xs">
          The price could not be read: {resolution.error.message}
        </Alert>
      )}
    </>
  );
}

interface TokenRow {
  name: string;
  tokens: number;
  /** A decimal, as the price has it; null: not known. */
  perMillion: string | null;
}

const COLUMNS: readonly Column<TokenRow>[] = [
  { id: 'name', header: 'Tokens', cell: ({ name }) => name },
  { id: 'tokens', header: 'Count', align: 'right', cell: ({ tokens }) => count(tokens) },
  {
    id: 'price',
    header: 'Per million',
    align: 'right',
    cell: ({ perMillion }) => (perMillion === null ? '–' : exactUsd(nanoOf(perMillion))),
  },
  {
    id: 'cost',
    header: 'Cost',
    align: 'right',
    cell: ({ tokens, perMillion }) => (perMillion === null ? '–' : formatUsd(costOf(tokens, perMillion))),
  },
];

function tokenRows(call: Call, price: Price | null): TokenRow[] {
  const { prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens } = call;
  const cached = cached_tokens ?? 0;
  const written = cache_write_tokens ?? 0;
  // A price with tiers depends on the length of the input: the parts are not shown then.
  const rate = (value: string | null | undefined) =>
    price === null || price.tiers !== null ? null : (value ?? null);
  return [
    {
      name: 'Uncached input',
      tokens: (prompt_tokens ?? 0) - cached - written,
      perMillion: rate(price?.input),
    },
    { name: 'Cached input', tokens: cached, perMillion: rate(price?.cached_input ?? price?.input) },
    { name: 'Written to cache', tokens: written, perMillion: rate(price?.cache_write ?? price?.input) },
    {
      name: reasoning_tokens ? `Output (${count(reasoning_tokens)} reasoning)` : 'Output',
      tokens: completion_tokens ?? 0,
      perMillion: rate(price?.output),
    },
  ].filter(({ tokens, name }) => tokens > 0 || name === 'Uncached input');
}

/** In billionths of a dollar. */
function costOf(tokens: number, perMillion: string): bigint {
  const product = BigInt(tokens) * nanoOf(perMillion);
  return (product + 500_000n) / 1_000_000n;
}

function sourceOf({ cost_usd, price_id }: Call, price: Price | null): string {
  if (cost_usd === null)
    return 'No cost: the model has no price, or tokens are missing. Set one under Prices.';
  if (price_id === null) return 'The provider reported this cost.';
  if (price === null) return 'The price at that time was replaced since; the cost is what it was then.';
  const list = price.source === 'catalog' ? 'catalogue' : 'own price';
  return `Price of ${price.model} in ${price.catalog} (${list})${isFromStart(price) ? '' : `, in force since ${price.effective_from.slice(0, 10)}`}.`;
}
