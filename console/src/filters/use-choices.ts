import { useKeys, useProviders, useTeams } from '../api/names';
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
  const providers = useProviders(field === 'provider');
  const models = useUsage(
    { ...range.query, group_by: 'model', sort: 'calls', limit: 100 },
    field === 'model',
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
      return (providers.data?.data ?? []).map(({ name }) => ({ value: name, label: name }));
    case 'model':
      return (models.data?.data ?? []).flatMap(({ model }) =>
        model ? [{ value: model, label: model }] : [],
      );
    case 'status':
      return STATUSES.map((status) => ({ value: status, label: status }));
    case 'outcome':
      return Object.entries(OUTCOMES).map(([value, label]) => ({ value, label }));
    default:
      return [];
  }
}
