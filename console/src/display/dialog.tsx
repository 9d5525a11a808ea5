import { Button, Group, Modal, type ModalProps, Text } from '@mantine/core';
import { useRef, useState } from 'react';
import { useTopLayer } from './use-top-layer';

interface Props extends ModalProps {
  /** Escape and the cross ask first if something was typed or chosen. */
  keeps?: boolean;
}

/** A dialog over the page. Escape closes it only while it is the one on top. */
export function Dialog({ keeps = false, opened, onClose, closeOnEscape = true, children, ...modal }: Props) {
  const content = useRef<HTMLDivElement>(null);
  const atFirst = useRef(new Map<HTMLInputElement, string>());
  const isTyped = useRef(false);
  const [asking, setAsking] = useState(false);
  const isTop = useTopLayer(opened);
  // Before a change: what the fields hold then is not worth a question. Choosing in a list is no input for the browser.
  const note = () => {
    for (const field of content.current?.querySelectorAll('input') ?? [])
      if (!atFirst.current.has(field)) atFirst.current.set(field, valueOf(field));
  };
  const leave = () => {
    const isChosen = [...atFirst.current].some(
      ([field, value]) => field.isConnected && valueOf(field) !== value,
    );
    if (keeps && (isTyped.current || isChosen)) setAsking(true);
    else onClose();
  };
  return (
    <>
      <Modal
        closeButtonProps={{ 'aria-label': 'Close' }}
        {...modal}
        opened={opened}
        onClose={leave}
        closeOnEscape={closeOnEscape && isTop}
      >
        <div
          ref={content}
          onKeyDownCapture={note}
          onPointerDownCapture={note}
          onInputCapture={() => (isTyped.current = true)}
        >
          {children}
        </div>
      </Modal>
      {asking && <Question onStay={() => setAsking(false)} onLeave={onClose} />}
    </>
  );
}

function Question({ onStay, onLeave }: { onStay: () => void; onLeave: () => void }) {
  const isTop = useTopLayer(true);
  return (
    <Modal
      opened
      onClose={onStay}
      closeOnEscape={isTop}
      title="Discard what you entered?"
      size="sm"
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Text size="sm">It has not been saved.</Text>
      <Group justify="flex-end" gap="xs" mt="md">
        <Button variant="default" onClick={onLeave}>
          Discard
        </Button>
        <Button onClick={onStay} data-autofocus>
          Keep editing
        </Button>
      </Group>
    </Modal>
  );
}

function valueOf({ type, checked, value }: HTMLInputElement): string {
  return type === 'checkbox' ? String(checked) : value;
}
