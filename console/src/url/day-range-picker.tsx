import { Button, Stack } from '@mantine/core';
import { DatePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useState } from 'react';
import { addPeriods, civilOf, instantOf, twoDigits } from './calendar';
import type { TimeRange } from './time-range';

/** Two days of a calendar, both included, in the time zone of the page. Loaded when it is opened. */
export default function DayRangePicker({
  range,
  onChoose,
}: {
  range: TimeRange;
  onChoose: (bounds: { from: string; to: string }) => void;
}) {
  const { zone } = range;
  const [days, setDays] = useState<[string | null, string | null]>([
    dayOf(range.from, zone),
    dayOf(new Date(Math.min(range.to.getTime() - 1, Date.now())), zone),
  ]);
  const [first, last] = days;
  const apply = () => {
    if (first === null || last === null) return;
    onChoose({
      from: startOfDay(first, zone).toISOString(),
      to: addPeriods('day', startOfDay(last, zone), 1, zone).toISOString(),
    });
  };
  return (
    <Stack gap="xs">
      <DatePicker
        type="range"
        size="xs"
        allowSingleDateInRange
        value={days}
        onChange={setDays}
        defaultDate={last ?? undefined}
        maxDate={dayOf(new Date(), zone)}
        ariaLabels={{
          nextMonth: 'Next month',
          previousMonth: 'Previous month',
          monthLevelControl: 'Choose a month',
        }}
      />
      <Button size="xs" onClick={apply} disabled={first === null || last === null}>
        Show these days
      </Button>
    </Stack>
  );
}

function dayOf(instant: Date, zone: string): string {
  const { year, month, day } = civilOf(instant, zone);
  return `${year}-${twoDigits(month)}-${twoDigits(day)}`;
}

function startOfDay(text: string, zone: string): Date {
  const [year = 0, month = 1, day = 1] = text.slice(0, 10).split('-').map(Number);
  return instantOf({ year, month, day }, zone);
}
