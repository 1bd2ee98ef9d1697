import { describe, expect, it } from 'vitest';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { Dashboard } from '../support/browser.ts';
import { publish } from '../support/kafka.ts';
import { eventually } from '../support/world.ts';

export function testOperations({ world, ui, as }: Dashboard): void {
  describe('operations', () => {
    it('shows how many dead letters are open', async () => {
      const { page, complaints } = await as('admin');
      await page.goto(ui('/operations'));
      await page.getByText('None is open.').waitFor();
      const headers = { ce_type: messageType('create_transaction'), ce_id: 'x' };
      const topic = topicName(world.bank.topic_prefix, 'ledger.commands');
      await publish(world.bank, [{ topic, partition: 0, key: 'acc_x', value: '{"no": "<JSON>', headers }]);
      await eventually(async () => (await world.api.all<DeadLetter>('/admin/dead-letters')).length === 1);
      await page.evaluate("htmx.trigger('#operations', 'refresh')");
      await page.getByText('1 open: messages that could not be processed').waitFor();
      expect(complaints).toEqual([]);
    });

    it('shows which services respond, also while one is stopped', async () => {
      const { page, complaints } = await as('auditor');
      await page.goto(ui('/operations'));
      await page.getByRole('row', { name: /ledger Yes Requests pass/ }).waitFor();
      await page.getByText(/^\d+, \d+\.\d a second$/).waitFor();
      const accounts = world.bank.process('accounts');
      await accounts.stop();
      await page.goto(ui('/operations'));
      await page.getByRole('row', { name: /accounts No/ }).waitFor();
      await page.getByRole('row', { name: /ledger Yes Requests pass/ }).waitFor();
      await accounts.restart();
      expect(complaints).toEqual([]);
    });
  });
}
