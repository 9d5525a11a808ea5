import { Fieldset, NumberInput, Select, SimpleGrid, Stack, Switch, TagsInput, Text } from '@mantine/core';
import { useState } from 'react';
import type { ApiError } from '../api/client';
import { BudgetFields } from './budget-fields';
import {
  type Budget,
  type EndUserLimits,
  endUserOrNull,
  type LimitMembers,
  NO_RATES,
  type OwnLimits,
  type Rates,
  ratesOrNull,
} from './limit-draft';
import { type BudgetOwner, isSameBudget, UsedBefore } from './used-before';

interface Props {
  value: LimitMembers;
  onChange: (value: LimitMembers) => void;
  error: ApiError | undefined;
  /** What is changed, and the budgets that it has; absent: it is created, and has used nothing. */
  stored?: { owner: BudgetOwner; budgets: readonly Budget[] };
}

/** Models, limits and budgets of a team or key. */
export function LimitFields({ value, onChange, error, stored }: Props) {
  return (
    <Stack gap="md">
      <ModelFields value={value} onChange={onChange} error={error} />
      <OwnLimitFields
        value={value}
        onChange={(limits) => onChange({ ...value, ...limits })}
        error={error}
        stored={stored}
      />
    </Stack>
  );
}

interface OwnProps {
  value: OwnLimits;
  onChange: (value: OwnLimits) => void;
  error: ApiError | undefined;
  stored: Props['stored'] | undefined;
  /** What a new budget does with calls of models without a price. */
  unpriced?: Budget['unpriced'];
}

/** Limits and budgets, also of a group or of all calls. */
export function OwnLimitFields({ value, onChange, error, stored, unpriced }: OwnProps) {
  const errorOf = (field: string) => error?.of(field);
  const each: EndUserLimits = value.each_end_user ?? NO_EACH;
  const changeEach = (changed: Partial<EndUserLimits>) =>
    onChange({ ...value, each_end_user: endUserOrNull({ ...each, ...changed }) });
  const session: EndUserLimits = value.each_session ?? NO_EACH;
  const changeSession = (changed: Partial<EndUserLimits>) =>
    onChange({ ...value, each_session: endUserOrNull({ ...session, ...changed }) });
  return (
    <>
      <Fieldset legend="Limits of all calls" p="sm">
        <RateFields
          rates={value.limits ?? NO_RATES}
          onChange={(rates) => onChange({ ...value, limits: ratesOrNull(rates) })}
          errorOf={(field) => errorOf(`limits.${field}`)}
        />
        <Text size="sm" fw={500} mt="sm" mb={4}>
          Budgets
        </Text>
        <BudgetFields
          budgets={value.budgets}
          onChange={(budgets) => onChange({ ...value, budgets })}
          errorOf={errorOf}
          prefix="budgets"
          unpriced={unpriced}
          noteOf={(budget) =>
            stored !== undefined &&
            !stored.budgets.some((other) => isSameBudget(other, budget)) && (
              <UsedBefore owner={stored.owner} budget={budget} />
            )
          }
        />
      </Fieldset>
      <Each
        label="Limit each end user separately"
        description="Callers name their end users themselves. This shares fairly among honest callers; it stops nobody who lies."
        legend="Limits of each end user"
        initiallyOpen={value.each_end_user !== null}
        onOff={() => changeEach(NO_EACH)}
      >
        <RateFields
          rates={each}
          onChange={changeEach}
          errorOf={(field) => errorOf(`each_end_user.${field}`)}
        />
        <Text size="sm" fw={500} mt="sm" mb={4}>
          Budgets
        </Text>
        <BudgetFields
          budgets={each.budgets}
          onChange={(budgets) => changeEach({ budgets })}
          errorOf={errorOf}
          prefix="each_end_user.budgets"
          unpriced={unpriced}
        />
      </Each>
      <Each
        label="Limit each session separately"
        description="A header of the call names its session. Calls that name none are not counted."
        legend="Limits of each session"
        initiallyOpen={value.each_session !== null}
        onOff={() => changeSession(NO_EACH)}
      >
        <RateFields
          rates={session}
          onChange={changeSession}
          errorOf={(field) => errorOf(`each_session.${field}`)}
        />
        <Text size="sm" fw={500} mt="sm" mb={4}>
          Budgets
        </Text>
        <BudgetFields
          budgets={session.budgets}
          onChange={(budgets) => changeSession({ budgets })}
          errorOf={errorOf}
          prefix="each_session.budgets"
          unpriced={unpriced}
          ofSessions
        />
      </Each>
    </>
  );
}

const NO_EACH: EndUserLimits = { ...NO_RATES, budgets: [] };

function Each({
  label,
  description,
  legend,
  initiallyOpen,
  onOff,
  children,
}: {
  label: string;
  description: string;
  legend: string;
  initiallyOpen: boolean;
  onOff: () => void;
  children: React.ReactNode;
}) {
  const [on, setOn] = useState(initiallyOpen);
  return (
    <>
      <Switch
        label={label}
        description={description}
        checked={on}
        onChange={(event) => {
          setOn(event.currentTarget.checked);
          if (!event.currentTarget.checked) onOff();
        }}
      />
      {on && (
        <Fieldset legend={legend} p="sm">
          {children}
        </Fieldset>
      )}
    </>
  );
}

function ModelFields({ value, onChange, error }: Pick<Props, 'value' | 'onChange' | 'error'>) {
  return (
    <>
      <Switch
        label="Only some models"
        checked={value.models !== null}
        onChange={(event) => onChange({ ...value, models: event.currentTarget.checked ? [] : null })}
      />
      {value.models !== null && (
        <TagsInput
          label="Models"
          description="Names, in which * stands for any characters. None at all: no model is allowed."
          placeholder={value.models.length === 0 ? 'gpt-5*' : undefined}
          value={value.models}
          onChange={(models) => onChange({ ...value, models })}
          splitChars={[',', ' ']}
          acceptValueOnBlur
          error={error?.of('models')}
        />
      )}
      <Select
        label="Streams that do not report tokens"
        allowDeselect={false}
        data={[
          { value: 'as_sent', label: 'Forward unchanged; tokens and cost stay unknown' },
          { value: 'require', label: 'Reject, and say what to add' },
          { value: 'ask', label: 'Ask for them: add stream_options.include_usage' },
        ]}
        value={value.stream_usage}
        onChange={(mode) => onChange({ ...value, stream_usage: mode as LimitMembers['stream_usage'] })}
      />
    </>
  );
}

const RATES: [keyof Rates, string][] = [
  ['requests_per_minute', 'Requests per minute'],
  ['tokens_per_minute', 'Tokens per minute'],
  ['concurrent_requests', 'Requests at once'],
];

function RateFields({
  rates,
  onChange,
  errorOf,
}: {
  rates: Rates;
  onChange: (rates: Rates) => void;
  errorOf: (field: string) => string | undefined;
}) {
  const { requests_per_minute, tokens_per_minute, concurrent_requests } = rates;
  const all: Rates = { requests_per_minute, tokens_per_minute, concurrent_requests };
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="xs">
      {RATES.map(([name, label]) => (
        <NumberInput
          key={name}
          label={label}
          placeholder="unlimited"
          min={0}
          allowDecimal={false}
          allowNegative={false}
          thousandSeparator=","
          hideControls
          value={rates[name] ?? ''}
          onChange={(value) => onChange({ ...all, [name]: typeof value === 'number' ? value : null })}
          error={errorOf(name)}
        />
      ))}
    </SimpleGrid>
  );
}
