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
  const errorOf = (field: string) => error?.of(field);
  const each: EndUserLimits = value.each_end_user ?? { ...NO_RATES, budgets: [] };
  const changeEach = (changed: Partial<EndUserLimits>) =>
    onChange({ ...value, each_end_user: endUserOrNull({ ...each, ...changed }) });
  return (
    <Stack gap="md">
      <ModelFields value={value} onChange={onChange} error={error} />
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
          noteOf={(budget) =>
            stored !== undefined &&
            !stored.budgets.some((other) => isSameBudget(other, budget)) && (
              <UsedBefore owner={stored.owner} budget={budget} />
            )
          }
        />
      </Fieldset>
      <EachEndUser initiallyOpen={value.each_end_user !== null} onOff={() => changeEach(NO_EACH)}>
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
        />
      </EachEndUser>
    </Stack>
  );
}

const NO_EACH: EndUserLimits = { ...NO_RATES, budgets: [] };

function EachEndUser({
  initiallyOpen,
  onOff,
  children,
}: {
  initiallyOpen: boolean;
  onOff: () => void;
  children: React.ReactNode;
}) {
  const [on, setOn] = useState(initiallyOpen);
  return (
    <>
      <Switch
        label="Limit each end user separately"
        description="Callers name their end users themselves. This shares fairly among honest callers; it stops nobody who lies."
        checked={on}
        onChange={(event) => {
          setOn(event.currentTarget.checked);
          if (!event.currentTarget.checked) onOff();
        }}
      />
      {on && (
        <Fieldset legend="Limits of each end user" p="sm">
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
