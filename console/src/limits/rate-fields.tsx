import { NumberInput, SimpleGrid } from '@mantine/core';
import { type Filter, limitName, type Rates } from './limit-draft';

const RATES: [name: keyof Rates, label: string, resource: string, period: string][] = [
  ['requests_per_minute', 'Requests per minute', 'requests', 'minute'],
  ['tokens_per_minute', 'Tokens per minute', 'tokens', 'minute'],
  ['concurrent_requests', 'Requests at once', 'concurrent_requests', 'at_once'],
];

/** Requests and tokens in any minute, and requests at the same time. */
export function RateFields({
  rates,
  onChange,
  errorOf,
  raised,
}: {
  /** They may be of some calls alone. */
  rates: Rates & Partial<Filter>;
  onChange: (rates: Rates) => void;
  errorOf: (field: string) => string | undefined;
  /** The name of the limit that the form was opened to raise. */
  raised: string | undefined;
}) {
  const { requests_per_minute, tokens_per_minute, concurrent_requests } = rates;
  const all: Rates = { requests_per_minute, tokens_per_minute, concurrent_requests };
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="xs">
      {RATES.map(([name, label, resource, period]) => (
        <NumberInput
          key={name}
          label={label}
          placeholder="unlimited"
          data-autofocus={raised === limitName(resource, period, rates) || undefined}
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
