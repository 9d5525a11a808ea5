import { Select, Stack, Switch, TagsInput } from '@mantine/core';
import type { ApiError } from '../api/client';
import type { LimitMembers } from './limit-draft';
import { OwnLimitFields, type StoredLimits } from './own-limit-fields';

interface Props {
  value: LimitMembers;
  onChange: (value: LimitMembers) => void;
  error: ApiError | undefined;
  /** What is changed; absent: it is created, and has used nothing. */
  stored?: StoredLimits;
  /** The name of the limit that the form was opened to raise. */
  raised?: string;
}

/** Models, limits and budgets of a team or key. */
export function LimitFields({ value, onChange, error, stored, raised }: Props) {
  return (
    <Stack gap="md">
      <ModelFields value={value} onChange={onChange} error={error} />
      <OwnLimitFields
        value={value}
        onChange={(limits) => onChange({ ...value, ...limits })}
        error={error}
        stored={stored}
        raised={raised}
      />
    </Stack>
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
