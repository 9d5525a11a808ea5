import { Button, MultiSelect, SimpleGrid, TagsInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { providersQuery } from '../api/load-all';
import { useLeads } from '../app/session';
import type { Filter } from './limit-draft';

interface Props {
  value: Filter;
  onChange: (filter: Required<Filter>) => void;
  errorOf: (member: string) => string | undefined;
}

/** Which calls count, by provider and model: folded until somebody asks for it, or one is named. */
export function FoldedFilter({ value, onChange, errorOf }: Props) {
  const [open, setOpen] = useState(value.providers != null || value.models != null);
  return open ? (
    <FilterFields value={value} onChange={onChange} errorOf={errorOf} />
  ) : (
    <Button variant="subtle" size="compact-xs" mt="xs" aria-expanded={false} onClick={() => setOpen(true)}>
      Only some calls
    </Button>
  );
}

/** Which calls count, by provider and model. */
export function FilterFields({ value, onChange, errorOf }: Props) {
  const filter = { providers: value.providers ?? null, models: value.models ?? null };
  const orNull = (names: string[]) => (names.length === 0 ? null : names);
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" mt="xs">
      <Providers
        value={filter.providers ?? []}
        onChange={(names) => onChange({ ...filter, providers: orNull(names) })}
        error={errorOf('providers')}
      />
      <TagsInput
        label="Only these models"
        description="As the provider gets the name; * stands for any characters."
        inputWrapperOrder={ORDER}
        placeholder={filter.models === null ? 'all' : undefined}
        value={filter.models ?? []}
        onChange={(names) => onChange({ ...filter, models: orNull(names) })}
        splitChars={[',', ' ']}
        acceptValueOnBlur
        error={errorOf('models')}
      />
    </SimpleGrid>
  );
}

const ORDER: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error'];

interface FieldProps {
  value: string[];
  onChange: (names: string[]) => void;
  error: string | undefined;
}

/** Leads see no list of providers, and type the names. */
function Providers(field: FieldProps) {
  const leads = useLeads();
  const providers = useQuery({ ...providersQuery, enabled: !leads }).data?.data ?? [];
  const all = field.value.length === 0 ? 'all' : undefined;
  return leads ? (
    <TagsInput
      label="Only these providers"
      placeholder={all}
      splitChars={[',', ' ']}
      acceptValueOnBlur
      {...field}
    />
  ) : (
    <MultiSelect
      label="Only these providers"
      placeholder={all}
      data={[...new Set([...providers.map(({ name }) => name), ...field.value])]}
      searchable
      nothingFoundMessage="No provider matches"
      {...field}
    />
  );
}
