import {
  ActionIcon,
  Autocomplete,
  Button,
  Group,
  Popover,
  Select,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { type FormEvent, useState } from 'react';
import { CloseIcon } from '../display/icons';
import type { TimeRange } from '../url/time-range';
import { memberOf, useUrlState } from '../url/url-state';
import { type Field, type FieldName, FIELDS } from './fields';
import classes from './filter-bar.module.css';
import { useCallFilter } from './use-call-filter';
import { useChoices, useLabel } from './use-choices';

/** Fields whose values are looked up as they are typed. */
const IS_SEARCHED: readonly FieldName[] = ['team', 'key'];
const TYPING_MS = 200;

/** The filter of the page as chips, and a form that adds one. */
export function FilterBar({ fields, range }: { fields: readonly FieldName[]; range: TimeRange }) {
  const [, setUrl] = useUrlState();
  const filter = useCallFilter(fields);
  const active = fields.filter((field) => filter[field] !== undefined);
  return (
    <Group gap="xs" mb="md" role="group" aria-label="Filters">
      {active.map((field) => (
        <Chip key={field} field={field} value={String(filter[field])} />
      ))}
      <AddFilter key={active.join()} fields={fields} range={range} />
      {active.length > 1 && (
        <Button
          size="compact-sm"
          variant="subtle"
          onClick={() => setUrl(Object.fromEntries(fields.map((field) => [field, undefined])))}
        >
          Remove all
        </Button>
      )}
    </Group>
  );
}

function Chip({ field, value }: { field: FieldName; value: string }) {
  const [, setUrl] = useUrlState();
  const name = useLabel(field, value);
  const { label, unit }: Field = FIELDS[field];
  const shown = unit === undefined ? name : `${name} ${unit}`;
  const text = `${label}: ${shown}`;
  return (
    <span className={classes.chip}>
      <Text span size="sm" truncate="end" maw={280} title={text}>
        <Text span c="dimmed" size="sm">
          {label}:
        </Text>{' '}
        {shown}
      </Text>
      <ActionIcon
        size="sm"
        variant="subtle"
        color="gray"
        aria-label={`Remove filter ${text}`}
        onClick={() => setUrl({ [field]: undefined })}
      >
        <CloseIcon size={14} />
      </ActionIcon>
    </span>
  );
}

function AddFilter({ fields, range }: { fields: readonly FieldName[]; range: TimeRange }) {
  const [opened, setOpened] = useState(false);
  return (
    <Popover
      opened={opened}
      onChange={setOpened}
      position="bottom-start"
      trapFocus
      returnFocus
      withinPortal
      width={300}
    >
      <Popover.Target>
        <Button size="compact-sm" variant="default" onClick={() => setOpened(!opened)}>
          Add filter
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        {opened && <Form fields={fields} range={range} close={() => setOpened(false)} />}
      </Popover.Dropdown>
    </Popover>
  );
}

function Form({
  fields,
  range,
  close,
}: {
  fields: readonly FieldName[];
  range: TimeRange;
  close: () => void;
}) {
  const [, setUrl] = useUrlState();
  const [field, setField] = useState<FieldName>(fields[0] ?? 'team');
  const [value, setValue] = useState('');
  const [typed, setTyped] = useState('');
  const [search] = useDebouncedValue(typed, TYPING_MS);
  const choices = useChoices(field, range, search);
  const definition: Field = FIELDS[field];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (value.trim() === '') return;
    setUrl(memberOf(field, value.trim()));
    close();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="xs">
        <Select
          label="Field"
          size="sm"
          allowDeselect={false}
          value={field}
          comboboxProps={{ withinPortal: false }}
          onChange={(name) => {
            setField(name as FieldName);
            setValue('');
            setTyped('');
          }}
          data={fields.map((name) => ({ value: name, label: FIELDS[name].label }))}
        />
        {definition.input === 'choice' ? (
          <Select
            label={definition.label}
            size="sm"
            searchable
            value={value === '' ? null : value}
            onChange={(chosen) => setValue(chosen ?? '')}
            data={choices}
            // What was found on the server is not sorted out again by its label.
            {...(IS_SEARCHED.includes(field) && {
              filter: ({ options }) => options,
              onSearchChange: (text: string) => {
                // The label of the chosen one is written into the field.
                if (!choices.some(({ label }) => label === text)) setTyped(text);
              },
            })}
            limit={100}
            comboboxProps={{ withinPortal: false }}
            nothingFoundMessage={search === typed ? 'Nothing found' : 'Searching …'}
          />
        ) : definition.input === 'list' ? (
          <TagsInput
            label={definition.label}
            description={definition.hint}
            size="sm"
            value={value === '' ? [] : value.split(',')}
            onChange={(chosen) => setValue(chosen.join())}
            data={choices.map((choice) => choice.value)}
            splitChars={[',', ' ']}
            acceptValueOnBlur
            // Stays open for the next one, and must not cover the button.
            comboboxProps={{ withinPortal: false, position: 'top-start' }}
          />
        ) : definition.input === 'suggest' ? (
          <Autocomplete
            label={definition.label}
            description={definition.hint}
            size="sm"
            value={value}
            onChange={setValue}
            data={choices.map((choice) => choice.value)}
            limit={100}
            comboboxProps={{ withinPortal: false }}
          />
        ) : (
          <TextInput
            label={definition.label}
            description={definition.hint}
            size="sm"
            value={value}
            inputMode={definition.input === 'number' ? 'numeric' : undefined}
            pattern={definition.input === 'number' ? '[0-9]{1,9}' : undefined}
            onChange={(event) => setValue(event.currentTarget.value)}
          />
        )}
        <Button type="submit" size="sm" disabled={value.trim() === '' && definition.input !== 'list'}>
          Add filter
        </Button>
      </Stack>
    </form>
  );
}
