import { TextInput, type TextInputProps } from '@mantine/core';
import { decimalOf } from './decimal';

type Props = Omit<TextInputProps, 'value' | 'onChange'> & {
  value: string;
  onChange: (amount: string) => void;
};

/** An amount in dollars. It may be typed as in the reader's country; what is understood is shown when the field is left. */
export function AmountInput({ value, onChange, ...input }: Props) {
  const settle = () => {
    const amount = decimalOf(value);
    if (amount !== value) onChange(amount);
  };
  return (
    <TextInput
      leftSection="$"
      inputMode="decimal"
      autoComplete="off"
      {...input}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value.trim())}
      onBlur={settle}
      onKeyDown={(event) => {
        if (event.key === 'Enter') settle();
      }}
    />
  );
}
