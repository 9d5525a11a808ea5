import { NumberInput, Select, SimpleGrid } from '@mantine/core';
import type { ApiError } from '../../api/client';
import { AmountInput } from '../../forms/amount-input';
import { ProviderNames } from '../providers/provider-names';
import type { Team } from './team';

type SelfService = Team['self_service'];

/** Keys that members of the team may create for themselves. */
export function SelfServiceFields({
  value,
  onChange,
  error,
  shown,
}: {
  value: SelfService;
  onChange: (value: SelfService) => void;
  error: ApiError | undefined;
  /** The team as it is stored; absent: it is created. */
  shown: Team | undefined;
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
              : {
                  keys_per_user: 3,
                  max_days: 90,
                  budget_usd_per_month: null,
                  providers: null,
                  sign_in_within_days: null,
                },
          )
        }
      />
      {value !== null && <Rules value={value} onChange={onChange} error={error} shown={shown} />}
    </>
  );
}

function Rules({
  value,
  onChange,
  error,
  shown,
}: {
  value: NonNullable<SelfService>;
  onChange: (value: SelfService) => void;
  error: ApiError | undefined;
  shown: Team | undefined;
}) {
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
      <NumberInput
        label="Days after a sign-in"
        description="A key of a user of single sign-on stops working so many days after they last signed in, and works again when they do."
        placeholder="No sign-in is needed"
        min={1}
        max={90}
        allowDecimal={false}
        value={value.sign_in_within_days ?? ''}
        onChange={(days) => onChange({ ...value, sign_in_within_days: days === '' ? null : Number(days) })}
        error={error?.of('self_service.sign_in_within_days')}
      />
      <ProviderNames
        label="Providers and routes of members' keys"
        all="All, also those added later"
        value={value.providers}
        onChange={(providers) => onChange({ ...value, providers })}
        error={error?.of('self_service.providers')}
        team={shown?.id}
        allowed={shown?.self_service?.providers ?? shown?.providers ?? null}
      />
    </>
  );
}
