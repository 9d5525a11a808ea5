import { Button, Group, Modal, Stack } from '@mantine/core';
import type { FormEvent, ReactNode } from 'react';
import { ErrorAlert } from '../display/error-alert';

interface Props {
  title: string;
  onClose: () => void;
  onSubmit: () => void;
  /** The label of the button: "Create key". */
  action: string;
  pending: boolean;
  error: unknown;
  disabled?: boolean;
  size?: string;
  children: ReactNode;
}

/** A form over the page. It keeps what was typed when the gateway rejects it, and says why. Mount it to open it. */
export function FormModal({
  title,
  onClose,
  onSubmit,
  action,
  pending,
  error,
  disabled,
  size = 'lg',
  children,
}: Props) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // A form inside a portal still bubbles to the form around it.
    event.stopPropagation();
    if (!pending) onSubmit();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size={size}
      closeButtonProps={{ 'aria-label': 'Close' }}
      closeOnClickOutside={false}
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="md">
          {children}
          <ErrorAlert error={error} />
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={pending} disabled={disabled}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
