import { ActionIcon, Button, Group, Select, Stack } from '@mantine/core';
import { PRICE_UNITS } from '../../api/query-values';
import { CloseIcon } from '../../display/icons';
import { AmountInput } from '../../forms/amount-input';
import { type Price, unitName, unitOf } from './price';

type Extra = Price['extra'];

/** The price of a unit, while it is being written. */
export interface UnitPrice {
  unit: string | null;
  usd: string;
}

export function unitPricesOf(extra: Extra): { unit: string; usd: string }[] {
  // The database has an order of its own.
  return PRICE_UNITS.flatMap((unit) => {
    const usd = extra?.[unit] ?? null;
    return usd === null ? [] : [{ unit, usd }];
  });
}

/** As the API takes them; null for none. */
export function extraOf(units: readonly UnitPrice[]): Extra {
  const named = units.flatMap(({ unit, usd }) => (unit === null ? [] : [[unit, usd] as const]));
  return named.length === 0 ? null : (Object.fromEntries(named) as Extra);
}

/** What is billed by the piece or by the second, and tokens with a price of their own, each in a row. */
export function UnitFields({
  units,
  onChange,
  errorOf,
}: {
  units: readonly UnitPrice[];
  onChange: (units: UnitPrice[]) => void;
  /** What the gateway says of a unit; of all for the name `extra`. */
  errorOf: (field: string) => string | undefined;
}) {
  const free = PRICE_UNITS.filter((name) => units.every(({ unit }) => unit !== name));
  const replace = (index: number, unit: UnitPrice) =>
    onChange(units.map((old, at) => (at === index ? unit : old)));
  return (
    <Stack gap="xs">
      {units.map(({ unit, usd }, index) => (
        <Group key={index} gap="xs" align="flex-start" wrap="nowrap">
          <Select
            aria-label={`Unit ${index + 1}`}
            placeholder="Unit"
            flex="2 1 180px"
            searchable
            allowDeselect={false}
            data={[...(unit === null ? [] : [unit]), ...free].map((name) => ({
              value: name,
              label: unitName(name),
            }))}
            value={unit}
            onChange={(chosen) => replace(index, { unit: chosen, usd })}
            error={unit === null ? undefined : errorOf(`extra.${unit}`)}
          />
          <AmountInput
            aria-label={`Price of unit ${index + 1}`}
            placeholder={unit === null ? 'USD' : unitOf(unit)}
            flex="1 1 150px"
            value={usd}
            onChange={(amount) => replace(index, { unit, usd: amount })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size="input-sm"
            aria-label={`Remove unit ${index + 1}`}
            onClick={() => onChange(units.filter((_, at) => at !== index))}
          >
            <CloseIcon />
          </ActionIcon>
        </Group>
      ))}
      {free.length > 0 && (
        <div>
          <Button variant="default" size="xs" onClick={() => onChange([...units, { unit: null, usd: '' }])}>
            Add a unit
          </Button>
        </div>
      )}
    </Stack>
  );
}
