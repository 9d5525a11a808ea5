import { Button, Group, Paper, Stack } from '@mantine/core';
import { FilterFields } from './filter-fields';
import { type FilteredRates, NO_RATES } from './limit-draft';
import { OtherError } from './other-error';
import { RateFields } from './rate-fields';
import { useRowKeys } from './row-keys';

/** Limits of calls to some providers, or of some models. */
export function FilteredFields({
  value,
  onChange,
  errorOf,
  raised,
}: {
  value: readonly FilteredRates[];
  onChange: (value: FilteredRates[]) => void;
  errorOf: (field: string) => string | undefined;
  raised: string | undefined;
}) {
  const rows = useRowKeys(value.length);
  const change = (index: number, changed: Partial<FilteredRates>) =>
    onChange(value.map((old, at) => (at === index ? { ...old, ...changed } : old)));
  return (
    <Stack gap="xs" mt="sm">
      {value.map((one, index) => (
        <Paper
          key={rows.keys[index]}
          withBorder
          p="xs"
          role="group"
          aria-label={`Limits of some calls ${index + 1}`}
        >
          <FilterFields
            value={one}
            onChange={(filter) => change(index, filter)}
            errorOf={(member) => errorOf(`filtered_limits.${index}.${member}`)}
          />
          <div style={{ marginTop: 'var(--mantine-spacing-xs)' }}>
            <RateFields
              rates={one}
              onChange={(rates) => change(index, rates)}
              errorOf={(member) => errorOf(`filtered_limits.${index}.${member}`)}
              raised={raised}
            />
          </div>
          <Group justify="flex-end" mt="xs">
            <Button
              variant="default"
              size="compact-xs"
              aria-label={`Remove limits of some calls ${index + 1}`}
              onClick={() => {
                rows.remove(index);
                onChange(value.filter((_, at) => at !== index));
              }}
            >
              Remove
            </Button>
          </Group>
          <OtherError find={() => errorOf(`filtered_limits.${index}`)} />
        </Paper>
      ))}
      <OtherError find={() => errorOf('filtered_limits')} />
      <div>
        <Button
          variant="default"
          size="xs"
          onClick={() => {
            rows.add();
            onChange([...value, { providers: null, models: null, ...NO_RATES }]);
          }}
        >
          Limit some calls
        </Button>
      </div>
    </Stack>
  );
}
