import { Fieldset, Switch, Text } from '@mantine/core';
import { useState } from 'react';
import type { ApiError } from '../api/client';
import { BudgetFields } from './budget-fields';
import { FilteredFields } from './filtered-fields';
import {
  type Budget,
  type EachLimits,
  eachOrNull,
  isSameBudget,
  NEW_BUDGET,
  NO_EACH,
  NO_RATES,
  type OwnLimits,
  ratesOrNull,
} from './limit-draft';
import { RateFields } from './rate-fields';
import { type BudgetOwner, UsedBefore } from './used-before';

/** Whose limits are changed, and the budgets that it has. */
export interface StoredLimits {
  owner: BudgetOwner;
  budgets: readonly Budget[];
}

interface Props {
  value: OwnLimits;
  onChange: (changed: Partial<OwnLimits>) => void;
  error: ApiError | undefined;
  /** What a new budget does with calls of models without a price. */
  unpriced?: Budget['unpriced'];
  /** Absent: the owner is created, and has used nothing. */
  stored: StoredLimits | undefined;
  /** The name of the limit that the form was opened to raise. */
  raised?: string;
}

/** The limits and budgets of a team, key or group, or of the installation. */
export function OwnLimitFields({ value, onChange, error, unpriced = 'reject', stored, raised }: Props) {
  const newBudget: Budget = { ...NEW_BUDGET, unpriced };
  const errorOf = (field: string) => error?.of(field);
  return (
    <>
      <Fieldset legend="Limits of all calls together" p="sm">
        <RateFields
          rates={value.limits ?? NO_RATES}
          onChange={(rates) => onChange({ limits: ratesOrNull(rates) })}
          errorOf={(field) => errorOf(`limits.${field}`)}
          raised={raised}
        />
        <FilteredFields
          value={value.filtered_limits}
          onChange={(filtered_limits) => onChange({ filtered_limits })}
          errorOf={errorOf}
          raised={raised}
        />
        <Text size="sm" fw={500} mt="sm" mb={4}>
          Budgets
        </Text>
        <BudgetFields
          budgets={value.budgets}
          added={newBudget}
          onChange={(budgets) => onChange({ budgets })}
          errorOf={errorOf}
          prefix="budgets"
          raised={raised}
          noteOf={(budget, change) =>
            stored !== undefined &&
            !stored.budgets.some((other) => isSameBudget(other, budget)) && (
              <UsedBefore owner={stored.owner} budget={budget} onChange={change} />
            )
          }
        />
      </Fieldset>
      <EachFields
        of="end user"
        about="Callers name their end users themselves. This shares fairly among honest callers; it stops nobody who lies."
        value={value.each_end_user}
        onChange={(each_end_user) => onChange({ each_end_user })}
        added={newBudget}
        prefix="each_end_user"
        errorOf={errorOf}
        raised={raised}
      />
      <EachFields
        of="session"
        about="Calls that name no session are not counted. A budget is for the whole session, and the next session begins at 0."
        value={value.each_session}
        onChange={(each_session) => onChange({ each_session })}
        added={{ ...newBudget, period: 'session' }}
        prefix="each_session"
        errorOf={errorOf}
        raised={raised}
      />
    </>
  );
}

/** Limits that each end user, or each session, has for itself. */
function EachFields({
  of,
  about,
  value,
  onChange,
  added,
  prefix,
  errorOf,
  raised,
}: {
  of: string;
  about: string;
  value: EachLimits | null;
  onChange: (value: EachLimits | null) => void;
  added: Budget;
  /** The name of the member in the API. */
  prefix: string;
  errorOf: (field: string) => string | undefined;
  raised: string | undefined;
}) {
  const [on, setOn] = useState(value !== null);
  const each = value ?? NO_EACH;
  const ownRaised = raised?.startsWith(`${prefix} `) ? raised.slice(prefix.length + 1) : undefined;
  const change = (changed: Partial<EachLimits>) => onChange(eachOrNull({ ...each, ...changed }));
  return (
    <>
      <Switch
        label={`Limit each ${of} separately`}
        description={about}
        checked={on}
        onChange={(event) => {
          setOn(event.currentTarget.checked);
          if (!event.currentTarget.checked) onChange(null);
        }}
      />
      {on && (
        <Fieldset legend={`Limits of each ${of}`} p="sm">
          <RateFields
            rates={each}
            onChange={change}
            errorOf={(field) => errorOf(`${prefix}.${field}`)}
            raised={ownRaised}
          />
          <Text size="sm" fw={500} mt="sm" mb={4}>
            Budgets
          </Text>
          <BudgetFields
            budgets={each.budgets}
            added={added}
            onChange={(budgets) => change({ budgets })}
            errorOf={errorOf}
            prefix={`${prefix}.budgets`}
            raised={ownRaised}
          />
        </Fieldset>
      )}
    </>
  );
}
