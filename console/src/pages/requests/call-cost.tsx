import { Alert, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, ApiError, type ResponseOf } from '../../api/client';
import { exactUsd, formatUsd, nanoOf } from '../../figures/money';
import { count } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { isFromStart } from '../prices/price';
import type { Call } from './call';

type Price = ResponseOf<'/admin/v1/prices/{id}', 'get'>;

/** The tokens of a call, the price of each kind, and the cost that came of them. */
export function CallCost({ call }: { call: Call }) {
  const { price_id, cost_usd, prompt_tokens } = call;
  const found = useQuery({
    queryKey: ['price', price_id],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/prices/{id}', { path: { id: price_id! }, signal }).catch((error: unknown) => {
        // It was removed.
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }),
    enabled: price_id !== null,
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
  const units = unitsOf(call);
  if (prompt_tokens === null && call.completion_tokens === null && units !== '') {
    return (
      <Text size="sm">
        Counted: {units}. {cost_usd === null ? 'It has no cost.' : `It cost ${exactUsd(nanoOf(cost_usd))}.`}
      </Text>
    );
  }
  if (prompt_tokens === null && call.completion_tokens === null) {
    return (
      <Text size="sm" c="dimmed">
        {call.streamed
          ? 'The provider reported no tokens. Streams report them if the request has stream_options.include_usage.'
          : 'The provider reported no tokens.'}
        {call.usage_final === false && ` ${betweenOf(call)}`}
        {cost_usd !== null && ` It reported the cost: ${formatUsd(nanoOf(cost_usd))}.`}
      </Text>
    );
  }
  const price = found.data ?? null;
  const hasChanged = price !== null && hasOtherAmounts(call, price);
  const rows = tokenRows(call, hasChanged ? null : price);
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
        {sourceOf(call, price, hasChanged)}
      </Text>
      {units !== '' && (
        <Text size="xs" c="dimmed" mt={6}>
          Counted besides tokens: {units}.
        </Text>
      )}
      {found.error !== null && (
        <Alert color="red" variant="outline" mt="xs">
          The price could not be read: {found.error.message}
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
    price === null || hasTiersOf(call, price) ? null : (value ?? null);
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

/** Whether a tier of the price may apply to the call: not those of other service tiers, such as batches. */
function hasTiersOf(call: Call, price: Price): boolean {
  const used = call.extra_usage?.service_tier;
  return (price.tiers ?? []).some(({ service_tier: tier }) => tier === undefined || tier === used);
}

/** What was counted besides tokens: `images 3, web searches 2`. Empty if nothing was. */
function unitsOf({ extra_usage }: Call): string {
  return Object.entries(extra_usage ?? {})
    .filter(([name]) => !name.endsWith('_tokens') && name !== 'responses' && name !== 'uncounted_tools')
    .map(
      ([name, value]) =>
        `${name.replaceAll('_', ' ')} ${typeof value === 'number' ? count(value) : String(value)}`,
    )
    .join(', ');
}

/** In billionths of a dollar. */
function costOf(tokens: number, perMillion: string): bigint {
  const product = BigInt(tokens) * nanoOf(perMillion);
  return (product + 500_000n) / 1_000_000n;
}

/** Whether the amounts of the price cannot have led to the cost of the call: an own price can be changed. */
function hasOtherAmounts(call: Call, price: Price): boolean {
  // Such a price has more parts than are known here.
  if (
    call.cost_usd === null ||
    hasTiersOf(call, price) ||
    price.extra !== null ||
    price.cache_write_1h !== null
  )
    return false;
  const parts = tokenRows(call, price).map(({ tokens, perMillion }) => costOf(tokens, perMillion ?? '0'));
  const difference = parts.reduce((sum, part) => sum + part, nanoOf(price.per_call)) - nanoOf(call.cost_usd);
  // Each part is rounded.
  return difference > BigInt(parts.length) || -difference > BigInt(parts.length);
}

/** What is known of the cost of a call whose usage was not read to the end. */
function betweenOf({ cost_usd, cost_low_usd: low, cost_high_usd: high }: Call): string {
  if (low === null) return 'What it cost is not known: the model has no price.';
  // Of a WebSocket, what its open responses add.
  const more = cost_usd === null ? '' : ' more';
  if (high === null) return `It cost ${exactUsd(nanoOf(low))}${more} at least.`;
  return `It cost between ${exactUsd(nanoOf(low))} and ${exactUsd(nanoOf(high))}${more}.`;
}

function sourceOf(call: Call, price: Price | null, hasChanged: boolean): string {
  const { cost_usd, price_id, usage_final } = call;
  if (usage_final === false) return `Its usage was not read to the end. ${betweenOf(call)}`;
  if (cost_usd === null)
    return 'No cost: the model has no price, or tokens are missing. Set one under Prices.';
  if (price_id === null) return 'The provider reported this cost.';
  if (price === null) return 'The price at that time was removed since; the cost is what it was then.';
  if (hasChanged)
    return `The price of ${price.model} in ${price.catalog} was changed since; the cost is what it was then.`;
  const list = price.source === 'catalog' ? 'catalog' : 'own price';
  return `Price of ${price.model} in ${price.catalog} (${list})${isFromStart(price) ? '' : `, in force since ${price.effective_from.slice(0, 10)}`}.`;
}
