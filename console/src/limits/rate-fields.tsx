import { NumberInput, SimpleGrid } from '@mantine/core';
import type { Rates } from './limit-draft';

const RATES: [keyof Rates, string][] = [
  ['requests_per_minute', 'Requests per minute'],
  ['tokens_per_minute', 'Tokens per minute'],
  ['concurrent_requests', 'Requests at once'],
];

/** Requests and tokens in any minute, and requests at the same time. */
export function RateFields({
  rates,
  onChange,
  errorOf,
}: {
  rates: Rates;
  onChange: (rates: Rates) => void;
  errorOf: (field: string) => string | undefined;
}) {
  const { requests_per_minute, tokens_per_minute, concurrent_requests } = rates;
  const all: Rates = { requests_per_minute, tokens_per_minute, concurrent_requests };
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="xs">
      {RATES.map(([name, label]) => (
        <NumberInput
          key={name}
          label={label}
          placeholder="unlimited"
          min={0}
          allowDecimal={false}
          allowNegative={false}
          thousandSeparator=","
          hideControls
          value={rates[name] ?? ''}
          onChange={(value) => onChange({ ...all, [name]: typeof value === 'number' ? value : null })}
          error={errorOf(name)}
        />
      ))}
    </SimpleGrid>
  );
}
