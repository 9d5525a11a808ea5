import { useKeys, useTeams } from '../api/names';
import type { TimeRange } from '../url/time-range';
import { useUsage } from '../usage/use-usage';
import { type FieldName, OUTCOMES, STATUSES } from './fields';

export interface Choice {
  value: string;
  label: string;
}

/** The values to choose from for a field. */
export function useChoices(field: FieldName | undefined, range: TimeRange): Choice[] {
  const teams = useTeams(field === 'team');
  const keys = useKeys(field === 'key');
  const called = useUsage(
    { ...range.query, group_by: field === 'provider' ? 'provider' : 'model', sort: 'calls', limit: 100 },
    field === 'provider' || field === 'model',
  );
  switch (field) {
    case 'team':
      return (teams.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }));
    case 'key':
      return (keys.data?.data ?? []).map(({ id, name, team, prefix }) => ({
        value: id,
        label: `${team} / ${name} (${prefix}…)`,
      }));
    case 'provider':
    case 'model':
      return (called.data?.data ?? []).flatMap(({ [field]: name }) =>
        name ? [{ value: name, label: name }] : [],
      );
    case 'status':
      return STATUSES.map((status) => ({ value: status, label: status }));
    case 'outcome':
      return Object.entries(OUTCOMES).map(([value, label]) => ({ value, label }));
    default:
      return [];
  }
}
