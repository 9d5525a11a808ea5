import { Select } from '@mantine/core';
import type { ApiError } from '../../api/client';
import { ProviderNames, useProvidersOf } from '../providers/provider-names';
import type { Team } from './team';

type ProviderRules = Pick<Team, 'providers' | 'default_provider'>;

/** What keys of a team may use, and where its calls go by default. */
export function ProviderRuleFields({
  value,
  onChange,
  error,
  shown,
}: {
  value: ProviderRules;
  onChange: (value: ProviderRules) => void;
  error: ApiError | undefined;
  /** The team as it is stored; absent: it is created. */
  shown: Team | undefined;
}) {
  const names = useProvidersOf(shown?.name ?? null).filter(
    (name) => value.providers === null || value.providers.includes(name),
  );
  return (
    <>
      <ProviderNames
        label="Providers and routes"
        all="Its own, and those of no team"
        value={value.providers}
        onChange={(providers) => onChange({ ...value, providers })}
        error={error?.of('providers')}
        team={shown?.id}
        allowed={null}
      />
      <Select
        label="Default provider"
        description="Where its calls to /v1 go."
        allowDeselect={false}
        searchable
        data={[
          { value: '', label: 'The default of all teams' },
          ...new Set([...names, ...(value.default_provider === null ? [] : [value.default_provider])]),
        ]}
        value={value.default_provider ?? ''}
        onChange={(name) => onChange({ ...value, default_provider: name || null })}
        error={error?.of('default_provider')}
      />
    </>
  );
}
