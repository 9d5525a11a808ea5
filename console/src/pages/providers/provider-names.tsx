import { MultiSelect, TagsInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { providersQuery, teamsQuery } from '../../api/load-all';
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
  return useLeads() ? <OfTeam {...field} team={team} allowed={allowed} /> : <OfAll {...field} team={team} />;
}

/** The names that keys of a team may use. @param team its name; null: it is not known, or new */
export function useProvidersOf(team: string | null): string[] {
  const providers = useQuery(providersQuery).data?.data ?? [];
  const routes = useQuery(routesQuery).data?.data ?? [];
  const others = new Set(
    providers.filter((one) => one.team !== null && one.team !== team).map(({ name }) => name),
  );
  const open = routes.filter(({ targets }) => targets.every(({ provider }) => !others.has(provider)));
  return [...providers.filter(({ name }) => !others.has(name)), ...open].map(({ name }) => name);
}

const CLEAR = { 'aria-label': 'Allow all providers' };

function OfAll({ all, value, onChange, team, ...field }: Omit<Props, 'allowed'>) {
  const found = useQuery(teamsQuery).data?.rows.find(({ id, name }) => id === team || name === team);
  const listed = found?.providers ?? null;
  const names = useProvidersOf(found?.name ?? null).filter((name) => listed?.includes(name) ?? true);
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

/** A lead sees no providers but those of the team: chooses from those that may be used, if they are named, or that the team has called, or types. */
function OfTeam({ all, value, onChange, team, allowed, ...field }: Props) {
  const range = useTimeRange('30d');
  const called = useUsage(
    { ...range.query, team, group_by: 'provider', sort: 'calls', limit: 100 },
    allowed === null && team !== undefined,
  );
  const own = useQuery(providersQuery).data?.data ?? [];
  const used = (called.data?.data ?? []).flatMap(({ provider }) => provider ?? []);
  const names = allowed ?? [...own.map(({ name }) => name), ...used];
  return (
    <TagsInput
      {...field}
      description={
        allowed === null
          ? 'Those of the team, and those that it has called, are offered; you can type others.'
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
