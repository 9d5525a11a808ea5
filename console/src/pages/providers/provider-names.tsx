import { MultiSelect, TagsInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { providersQuery } from '../../api/load-all';
import { useLeads } from '../../app/session';
import { useTimeRange } from '../../url/time-range';
import { useUsage } from '../../usage/use-usage';
import { routesQuery } from './route';

interface Props {
  label: string;
  /** Shown while none is chosen. */
  all: string;
  value: readonly string[] | null;
  /** Null: all. */
  onChange: (value: string[] | null) => void;
  error: string | undefined;
  /** The team whose keys they are for, by name or ID. */
  team: string | undefined;
  /** Those that an administrator has named for keys of the team; null: all. */
  allowed: readonly string[] | null;
}

/** Names of providers and routes; none is all of them. */
export function ProviderNames({ team, allowed, ...field }: Props) {
  return useLeads() ? <OfTeam {...field} team={team} allowed={allowed} /> : <OfAll {...field} />;
}

type Field = Omit<Props, 'team' | 'allowed'>;

const CLEAR = { 'aria-label': 'Allow all providers' };

function OfAll({ all, value, onChange, ...field }: Field) {
  const providers = useQuery(providersQuery).data?.data ?? [];
  const routes = useQuery(routesQuery).data?.data ?? [];
  const names = [...providers, ...routes].map(({ name }) => name);
  return (
    <MultiSelect
      {...field}
      placeholder={value === null ? all : undefined}
      data={[...new Set([...names, ...(value ?? [])])]}
      value={[...(value ?? [])]}
      onChange={(chosen) => onChange(chosen.length === 0 ? null : chosen)}
      clearable
      clearButtonProps={CLEAR}
    />
  );
}

/** A lead sees no providers: chooses from those that may be used, if they are named, or that the team has called, or types. */
function OfTeam({ all, value, onChange, team, allowed, ...field }: Props) {
  const range = useTimeRange('30d');
  const called = useUsage(
    { ...range.query, team, group_by: 'provider', sort: 'calls', limit: 100 },
    allowed === null && team !== undefined,
  );
  const names = allowed ?? (called.data?.data ?? []).flatMap(({ provider }) => provider ?? []);
  return (
    <TagsInput
      {...field}
      description={
        allowed === null
          ? 'Those that the team has called are offered; you can type others.'
          : 'An administrator has named those that are offered.'
      }
      placeholder={value === null ? (allowed === null ? all : allowed.join(', ')) : undefined}
      data={[...new Set([...names, ...(value ?? [])])]}
      value={[...(value ?? [])]}
      onChange={(chosen) => onChange(chosen.length === 0 ? null : chosen)}
      acceptValueOnBlur
      splitChars={[',', ' ']}
      clearable
      clearButtonProps={CLEAR}
    />
  );
}
