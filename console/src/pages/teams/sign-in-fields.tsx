import { NumberInput, Select, SimpleGrid } from '@mantine/core';
import type { ApiError } from '../../api/client';
import { AmountInput } from '../../forms/amount-input';
import { ProviderNames } from '../providers/provider-names';
import type { Team } from './team';

type SignIn = Team['sign_in'];

const DEFAULTS: NonNullable<SignIn> = {
  budget_usd_per_month: null,
  providers: null,
  endpoints: 'inference',
  token_minutes: 60,
  days: 30,
};

/** Whether members of the team sign in from clients, and what their keys allow. */
export function SignInFields({
  value,
  onChange,
  error,
  shown,
}: {
  value: SignIn;
  onChange: (value: SignIn) => void;
  error: ApiError | undefined;
  /** The team as it is stored; absent: it is created. */
  shown: Team | undefined;
}) {
  return (
    <>
      <Select
        label="Sign-in from clients"
        description="Claude Code and other clients, without a key to copy."
        allowDeselect={false}
        data={[
          { value: 'off', label: 'Members cannot sign in' },
          { value: 'on', label: 'Members sign in by single sign-on' },
        ]}
        value={value === null ? 'off' : 'on'}
        onChange={(chosen) => onChange(chosen === 'off' ? null : (shown?.sign_in ?? DEFAULTS))}
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
  value: NonNullable<SignIn>;
  onChange: (value: SignIn) => void;
  error: ApiError | undefined;
  shown: Team | undefined;
}) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <NumberInput
          label="Sign in again after, days"
          min={1}
          max={90}
          allowDecimal={false}
          value={value.days}
          onChange={(days) => onChange({ ...value, days: Number(days) })}
          error={error?.of('sign_in.days')}
        />
        <NumberInput
          label="A token works for, minutes"
          min={5}
          max={720}
          allowDecimal={false}
          value={value.token_minutes}
          onChange={(minutes) => onChange({ ...value, token_minutes: Number(minutes) })}
          error={error?.of('sign_in.token_minutes')}
        />
        <AmountInput
          label="USD a month each person"
          placeholder="No budget"
          value={value.budget_usd_per_month ?? ''}
          onChange={(amount) => onChange({ ...value, budget_usd_per_month: amount || null })}
          error={error?.of('sign_in.budget_usd_per_month')}
        />
      </SimpleGrid>
      <Select
        label="Endpoints of people's keys"
        allowDeselect={false}
        data={[
          { value: 'inference', label: 'Inference only' },
          { value: 'own', label: 'Inference, and all at providers of the team' },
          { value: 'all', label: 'All' },
        ]}
        value={value.endpoints}
        onChange={(endpoints) =>
          onChange({ ...value, endpoints: endpoints as NonNullable<SignIn>['endpoints'] })
        }
        error={error?.of('sign_in.endpoints')}
      />
      <ProviderNames
        label="Providers and routes of people's keys"
        all="All, also those added later"
        value={value.providers}
        onChange={(providers) => onChange({ ...value, providers })}
        error={error?.of('sign_in.providers')}
        team={shown?.id}
        allowed={shown?.providers ?? null}
      />
    </>
  );
}
