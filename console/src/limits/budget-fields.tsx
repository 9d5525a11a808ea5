import { ActionIcon, Button, Group, NumberInput, Paper, Select, Stack, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { CloseIcon } from '../display/icons';
import { AmountInput } from '../forms/amount-input';
import { FoldedFilter } from './filter-fields';
import { type Budget, budgetName } from './limit-draft';
import { OtherError } from './other-error';
import { useRowKeys } from './row-keys';

/** Four for the same providers and models, which the gateway counts. */
const MAX_BUDGETS = 32;
const PERIODS = [
  { value: 'day', label: 'per day' },
  { value: 'week', label: 'per week' },
  { value: 'month', label: 'per month' },
  { value: 'total', label: 'in total' },
];

/** Budgets, in dollars or tokens. */
export function BudgetFields({
  budgets,
  added,
  onChange,
  errorOf,
  prefix,
  noteOf,
  raised,
}: {
  budgets: readonly Budget[];
  /** What a new one begins as. */
  added: Budget;
  onChange: (budgets: Budget[]) => void;
  /** What is said of a budget, below its fields. */
  noteOf?: (budget: Budget, onChange: (budget: Budget) => void) => ReactNode;
  /** What the gateway says of a member, such as `budgets.0.usd`. */
  errorOf: (field: string) => string | undefined;
  /** The name of the member in the API. */
  prefix: string;
  /** The name of the limit that the form was opened to raise. */
  raised: string | undefined;
}) {
  const rows = useRowKeys(budgets.length);
  const replace = (index: number, budget: Budget) =>
    onChange(budgets.map((old, at) => (at === index ? budget : old)));
  return (
    <Stack gap="xs">
      {budgets.map((budget, index) => (
        <BudgetRow
          key={rows.keys[index]}
          number={index + 1}
          budget={budget}
          hasFocus={raised === budgetName(budget)}
          onChange={(changed) => replace(index, changed)}
          onRemove={() => {
            rows.remove(index);
            onChange(budgets.filter((_, at) => at !== index));
          }}
          errorOf={(member) => errorOf(`${prefix}.${index}${member === '' ? '' : `.${member}`}`)}
          note={noteOf?.(budget, (changed) => replace(index, changed))}
        />
      ))}
      <OtherError find={() => errorOf(prefix)} />
      {budgets.length < MAX_BUDGETS && (
        <div>
          <Button
            variant="default"
            size="xs"
            onClick={() => {
              rows.add();
              onChange([...budgets, added]);
            }}
          >
            Add a budget
          </Button>
        </div>
      )}
    </Stack>
  );
}

function BudgetRow({
  number,
  budget,
  onChange,
  onRemove,
  errorOf,
  note,
  hasFocus,
}: {
  number: number;
  budget: Budget;
  onChange: (budget: Budget) => void;
  onRemove: () => void;
  /** What is wrong with a member, or with the budget itself: ''. */
  errorOf: (member: string) => string | undefined;
  note: ReactNode;
  /** Is the amount what is changed first? */
  hasFocus: boolean;
}) {
  const inUsd = budget.tokens === undefined;
  const { usd: _, tokens: __, ...rest } = budget;
  return (
    <Paper withBorder p="xs" role="group" aria-label={`Budget ${number}`}>
      <Group gap="xs" align="flex-end" wrap="wrap">
        {inUsd ? (
          <AmountInput
            label="Amount"
            placeholder="50.00"
            data-autofocus={hasFocus || undefined}
            value={budget.usd ?? ''}
            onChange={(usd) => onChange({ ...rest, usd })}
            error={errorOf('usd')}
            flex="1 1 110px"
          />
        ) : (
          <NumberInput
            label="Amount"
            placeholder="2,000,000"
            data-autofocus={hasFocus || undefined}
            min={0}
            allowDecimal={false}
            thousandSeparator=","
            hideControls
            value={budget.tokens ?? ''}
            onChange={(value) => onChange({ ...rest, tokens: typeof value === 'number' ? value : 0 })}
            error={errorOf('tokens')}
            flex="1 1 110px"
          />
        )}
        <Select
          label="Unit"
          allowDeselect={false}
          data={[
            { value: 'usd', label: 'USD' },
            { value: 'tokens', label: 'tokens' },
          ]}
          value={inUsd ? 'usd' : 'tokens'}
          onChange={(value) => onChange(value === 'usd' ? { ...rest, usd: '' } : { ...rest, tokens: 0 })}
          w={100}
        />
        {budget.period !== 'session' && (
          <Select
            label="Period"
            allowDeselect={false}
            data={PERIODS}
            value={budget.period}
            onChange={(value) => onChange({ ...budget, period: value as Budget['period'] })}
            error={errorOf('period')}
            w={140}
          />
        )}
        <ActionIcon
          variant="subtle"
          color="gray"
          size={36}
          aria-label={`Remove budget ${number}`}
          onClick={onRemove}
        >
          <CloseIcon size={16} />
        </ActionIcon>
      </Group>
      <Group gap="xs" align="flex-end" mt="xs" wrap="wrap">
        <Select
          label="When it is spent"
          allowDeselect={false}
          data={[
            { value: 'block', label: 'Reject calls' },
            { value: 'warn', label: 'Only count' },
          ]}
          value={budget.mode}
          onChange={(value) => onChange({ ...budget, mode: value as Budget['mode'] })}
          flex="1 1 130px"
        />
        <PercentField
          value={budget.alert_at}
          onChange={(alert_at) => onChange({ ...budget, alert_at })}
          error={errorOf('alert_at')}
        />
        {inUsd && (
          <Select
            label="Models without a price"
            allowDeselect={false}
            data={[
              { value: 'reject', label: 'Reject calls' },
              { value: 'allow', label: 'Allow, uncounted' },
            ]}
            value={budget.unpriced}
            onChange={(value) => onChange({ ...budget, unpriced: value as Budget['unpriced'] })}
            flex="1 1 150px"
          />
        )}
        <Select
          label="A call reserves"
          allowDeselect={false}
          data={[
            { value: 'typical', label: 'What is typical' },
            { value: 'worst', label: 'The most possible' },
          ]}
          value={budget.reservation}
          onChange={(value) => onChange({ ...budget, reservation: value as Budget['reservation'] })}
          flex="1 1 150px"
        />
      </Group>
      <FoldedFilter
        value={budget}
        onChange={(filter) => onChange({ ...budget, ...filter })}
        errorOf={errorOf}
      />
      <OtherError find={() => errorOf('')} />
      {note}
    </Paper>
  );
}

/** Percentages as text: "80, 100". */
function PercentField({
  value,
  onChange,
  error,
}: {
  value: readonly number[];
  onChange: (value: number[]) => void;
  error: string | undefined;
}) {
  const [text, setText] = useState(value.join(', '));
  const change = (typed: string) => {
    setText(typed);
    onChange(
      typed
        .split(/[\s,]+/)
        .filter((part) => part !== '')
        .map(Number),
    );
  };
  return (
    <TextInput
      label="Alert at %"
      placeholder="80, 100"
      inputMode="numeric"
      value={text}
      onChange={(event) => change(event.currentTarget.value)}
      error={error}
      flex="1 1 90px"
    />
  );
}
