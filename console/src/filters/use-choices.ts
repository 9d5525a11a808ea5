import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { useIsMember } from '../app/session';
import type { TimeRange } from '../url/time-range';
import { useUsage } from '../usage/use-usage';
import { type FieldName, OUTCOMES, RESULTS, STATUSES, USAGES } from './fields';

export interface Choice {
  value: string;
  label: string;
}

const STALE_MS = 60_000;
/** Of teams and keys: who does not see theirs types on. */
const SHOWN = 50;

/**
 * The values to choose from for a field.
 *
 * @param typed teams and keys are looked up by it: there may be too many to load
 */
export function useChoices(field: FieldName, range: TimeRange, typed = ''): Choice[] {
  const search = typed.trim() || undefined;
  const isMember = useIsMember();
  const groups = useQuery({
    queryKey: ['groups', 'choices'],
    queryFn: ({ signal }) => api.get('/admin/v1/groups', { query: { limit: 500 }, signal }),
    staleTime: STALE_MS,
    // Members type the name of theirs, which their team shows.
    enabled: field === 'group' && !isMember,
  });
  const teams = useQuery({
    queryKey: ['teams', 'choices', search],
    queryFn: ({ signal }) => api.get('/admin/v1/teams', { query: { search, limit: SHOWN }, signal }),
    placeholderData: keepPreviousData,
    staleTime: STALE_MS,
    enabled: field === 'team',
  });
  const keys = useQuery({
    queryKey: ['keys', 'choices', search],
    queryFn: ({ signal }) =>
      api.get('/admin/v1/keys', { query: { search, sort: 'name', limit: SHOWN }, signal }),
    placeholderData: keepPreviousData,
    staleTime: STALE_MS,
    enabled: field === 'key',
  });
  const called = useUsage(
    { ...range.query, group_by: field === 'provider' ? 'provider' : 'model', sort: 'calls', limit: 100 },
    field === 'provider' || field === 'model',
  );
  switch (field) {
    case 'group':
      return (groups.data?.data ?? []).map(({ name }) => ({ value: name, label: name }));
    case 'team':
      return (teams.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }));
    case 'key':
      return (keys.data?.data ?? []).map(({ id, name, team, prefix }) => ({
        value: id,
        label: prefix === null ? `${team} / ${name}` : `${team} / ${name} (${prefix}…)`,
      }));
    case 'provider':
    case 'model':
      return (called.data?.data ?? []).flatMap(({ [field]: name }) =>
        name ? [{ value: name, label: name }] : [],
      );
    case 'status':
      return STATUSES.map((status) => ({ value: status, label: status }));
    case 'failed':
      return Object.entries(RESULTS).map(([value, label]) => ({ value, label }));
    case 'usage_final':
      return Object.entries(USAGES).map(([value, label]) => ({ value, label }));
    case 'outcome':
      return Object.entries(OUTCOMES).map(([value, label]) => ({ value, label }));
    default:
      return [];
  }
}

/** What a chosen value is called. */
export function useLabel(field: FieldName, value: string): string {
  const team = useQuery({
    queryKey: ['team', value],
    queryFn: ({ signal }) => api.get('/admin/v1/teams/{id}', { path: { id: value }, signal }),
    staleTime: STALE_MS,
    retry: false,
    enabled: field === 'team',
  });
  const key = useQuery({
    queryKey: ['key', value],
    queryFn: ({ signal }) => api.get('/admin/v1/keys/{id}', { path: { id: value }, signal }),
    staleTime: STALE_MS,
    retry: false,
    // The beginning of a secret is a value, too.
    enabled: field === 'key' && !value.startsWith('ptn_'),
  });
  if (field === 'team') return team.data?.name ?? value;
  if (field === 'key') return key.data === undefined ? value : `${key.data.team} / ${key.data.name}`;
  if (field === 'outcome') return OUTCOMES[value as keyof typeof OUTCOMES] ?? value;
  if (field === 'usage_final') return USAGES[value as keyof typeof USAGES] ?? value;
  if (field === 'failed') return RESULTS[value as keyof typeof RESULTS] ?? value;
  return value;
}
