import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { DatePickerInput } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type operations } from '../../api/client';
import { Dialog } from '../../display/dialog';
import { ErrorAlert } from '../../display/error-alert';
import { Facts } from '../../display/facts';
import { Money } from '../../figures/figure';
import { count, counted } from '../../figures/numbers';
import { nanoOf } from '../../figures/money';
import { addPeriods, civilOf, instantOf, twoDigits } from '../../url/calendar';
import { useTimeZone } from '../../url/time-zone';
import type { Price } from './price';

/** The days that are offered after a change of a price. */
const OFFERED_DAYS = 30;

/**
 * Computes costs again with the present prices: first only what would change, then in earnest.
 *
 * @param of the price that was changed before; the model of a pattern is any, because calls are found by whole names
 */
export function Reprice({ of: price, onClose }: { of: Price | undefined; onClose: () => void }) {
  const zone = useTimeZone();
  const [days, setDays] = useState<[string | null, string | null]>(() =>
    price === undefined ? [null, null] : [dayOf(1 - OFFERED_DAYS, zone), dayOf(0, zone)],
  );
  const [model, setModel] = useState(price === undefined || price.model.endsWith('*') ? '' : price.model);
  const client = useQueryClient();
  const [first, last] = days;
  const reprice = useMutation({
    mutationFn: (dry_run: boolean) =>
      repriceAll({
        from: startOf(first!, zone).toISOString(),
        to: addPeriods('day', startOf(last!, zone), 1, zone).toISOString(),
        ...(model.trim() !== '' && { model: model.trim() }),
        dry_run,
      }),
    // Also of what was interrupted: its first parts are done.
    onSettled: (_, __, dry_run) => (dry_run ? undefined : client.invalidateQueries()),
  });
  const result = reprice.data;
  const isReady = first !== null && last !== null;
  const change = <T,>(set: (value: T) => void) => {
    return (value: T) => {
      reprice.reset();
      set(value);
    };
  };
  return (
    <Dialog opened onClose={onClose} title="Reprice calls">
      <Stack gap="md">
        <Text size="sm">
          The costs of these calls are computed again with the prices of today, and so are all sums. Costs
          that a provider reported itself stay. What budgets have charged stays, too.
        </Text>
        <DatePickerInput
          type="range"
          allowSingleDateInRange
          label="Days"
          placeholder="First and last day"
          value={days}
          onChange={change(setDays)}
          maxDate={new Date()}
          data-autofocus
        />
        <TextInput
          label="Only this model"
          placeholder="All models"
          value={model}
          onChange={(event) => change(setModel)(event.currentTarget.value)}
          spellCheck={false}
        />
        <ErrorAlert error={reprice.error} />
        <div aria-live="polite">
          {result !== undefined && (
            <Facts
              facts={[
                ['Calls with tokens', count(result.rows)],
                [result.dry_run ? 'Would change' : 'Changed', count(result.changed)],
                ['Cost before', <Money usd={result.before} />],
                [result.dry_run ? 'Cost would be' : 'Cost after', <Money usd={result.after} />],
              ]}
            />
          )}
        </div>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {result?.dry_run === false ? 'Close' : 'Cancel'}
          </Button>
          {result?.dry_run === true && result.changed > 0 ? (
            <Button onClick={() => reprice.mutate(false)} loading={reprice.isPending}>
              Reprice {counted(result.changed, 'call')}
            </Button>
          ) : (
            <Button
              onClick={() => reprice.mutate(true)}
              loading={reprice.isPending}
              disabled={!isReady || result !== undefined}
            >
              Show what would change
            </Button>
          )}
        </Group>
      </Stack>
    </Dialog>
  );
}

type Body = operations['reprice']['requestBody']['content']['application/json'];

/** The gateway stops after some seconds and returns where: asks until the end of the range. @returns the sums of all parts */
async function repriceAll(body: Omit<Body, 'cursor'>) {
  const sums = { rows: 0, changed: 0, before: 0n, after: 0n, dry_run: body.dry_run === true };
  let cursor: string | undefined;
  do {
    const part = await api.post('/admin/v1/prices/reprice', {
      body: { ...body, ...(cursor !== undefined && { cursor }) },
    });
    sums.rows += part.rows;
    sums.changed += part.changed;
    sums.before += nanoOf(part.cost_before);
    sums.after += nanoOf(part.cost_after);
    cursor = part.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return sums;
}

/** A day as the calendar has it. @param days after today */
function dayOf(days: number, zone: string): string {
  const { year, month, day } = civilOf(addPeriods('day', new Date(), days, zone), zone);
  return `${year}-${twoDigits(month)}-${twoDigits(day)}`;
}

function startOf(text: string, zone: string): Date {
  const [year = 0, month = 1, day = 1] = text.slice(0, 10).split('-').map(Number);
  return instantOf({ year, month, day }, zone);
}
