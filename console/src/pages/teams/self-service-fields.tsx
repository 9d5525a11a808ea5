import { MultiSelect, NumberInput, Select, SimpleGrid } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ApiError } from '../../api/client';
import { useLeads } from '../../app/session';
import { providersQuery } from '../../api/load-all';
import { AmountInput } from '../../forms/amount-input';
import { routesQuery } from '../providers/route';
import type { Team } from './team';

type SelfService = Team['self_service'];

/** Keys that members of the team may create for themselves. */
export function SelfServiceFields({
  value,
  onChange,
  error,
}: {
  value: SelfService;
  onChange: (value: SelfService) => void;
  error: ApiError | undefined;
}) {
  return (
    <>
      <Select
        label="Keys of members"
        allowDeselect={false}
        data={[
          { value: 'off', label: 'Members create none' },
          { value: 'on', label: 'Members create keys of their own' },
        ]}
        value={value === null ? 'off' : 'on'}
        onChange={(chosen) =>
          onChange(
            chosen === 'off'
              ? null
              : { keys_per_user: 3, max_days: 90, budget_usd_per_month: null, providers: null },
          )
        }
      />
      {value !== null && <Rules value={value} onChange={onChange} error={error} />}
    </>
  );
}

function Rules({
  value,
  onChange,
  error,
}: {
  value: NonNullable<SelfService>;
  onChange: (value: SelfService) => void;
  error: ApiError | undefined;
}) {
  // A lead sees no providers, and may only name fewer of those that an administrator has named.
  const leads = useLeads();
  const providers = useQuery({ ...providersQuery, enabled: !leads }).data?.data ?? [];
  const routes = useQuery({ ...routesQuery, enabled: !leads }).data?.data ?? [];
  const names = [
    ...new Set([...[...providers, ...routes].map(({ name }) => name), ...(value.providers ?? [])]),
  ];
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <NumberInput
          label="Keys of each"
          min={1}
          allowDecimal={false}
          value={value.keys_per_user}
          onChange={(count) => onChange({ ...value, keys_per_user: Number(count) })}
          error={error?.of('self_service.keys_per_user')}
        />
        <NumberInput
          label="Longest life, days"
          min={1}
          allowDecimal={false}
          value={value.max_days}
          onChange={(days) => onChange({ ...value, max_days: Number(days) })}
          error={error?.of('self_service.max_days')}
        />
        <AmountInput
          label="USD a month each"
          placeholder="No budget"
          value={value.budget_usd_per_month ?? ''}
          onChange={(amount) => onChange({ ...value, budget_usd_per_month: amount || null })}
          error={error?.of('self_service.budget_usd_per_month')}
        />
      </SimpleGrid>
      {(!leads || value.providers !== null) && (
        <MultiSelect
          label="Providers and routes of members' keys"
          placeholder={value.providers === null ? 'All, also those added later' : undefined}
          data={names}
          value={value.providers ?? []}
          onChange={(chosen) => onChange({ ...value, providers: chosen.length === 0 ? null : chosen })}
          error={error?.of('self_service.providers')}
          clearable
          clearButtonProps={{ 'aria-label': 'Allow all providers' }}
        />
      )}
    </>
  );
}
