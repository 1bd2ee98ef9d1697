import { describe, expect, it } from 'vitest';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { topicName } from '#libs/contracts/topics.ts';
import { type Dashboard, expectFine } from '../support/browser.ts';
import { publish } from '../support/kafka.ts';
import { eventually } from '../support/world.ts';

export function testOperations({ world, ui, as }: Dashboard): void {
  /** Publishes messages that are unreadable, and returns the dead letters that they become. */
  async function poison(requestIds: string[]): Promise<DeadLetter[]> {
    const headers = { ce_type: messageType('create_transaction'), ce_id: 'x' };
    await publish(
      world.bank,
      requestIds.map((id) => ({
        topic: topicName(world.bank.topic_prefix, 'ledger.commands'),
        partition: 0,
        key: 'acc_x',
        value: '{"no": "<JSON>',
        headers: { ...headers, 'request-id': id },
      })),
    );
    return eventually(async () => {
      const found = await world.api.all<DeadLetter>('/admin/dead-letters');
      return requestIds.every((id) => found.some(({ request_id }) => request_id === id)) && found;
    });
  }

  describe('operations', () => {
    it('dead letters are opened from their number, shown, redriven, and dropped, each after a confirmation', async () => {
      const { page, complaints } = await as('admin');
      await page.goto(ui('/operations'));
      await page.getByText('None is open.').waitFor();
      await poison(['poison-1', 'poison-2']);
      await page.evaluate("htmx.trigger('#operations', 'refresh')");
      await page.getByRole('link', { name: '2 open' }).click();
      await page.waitForURL('**/operations/dead-letters?state=open');
      await expectFine(page, 'dead-letters');
      const rows = page.locator('tbody tr');
      await rows.filter({ hasText: 'poison-1' }).getByRole('link').first().click();
      await page.getByText('{"no": "<JSON>').waitFor();
      await expectFine(page, 'dead-letter');
      await page.getByRole('button', { name: 'Drop' }).click();
      await page.getByLabel('Reason').fill('made by a test');
      await expectFine(page, 'dead-letter-drop');
      await page.getByRole('checkbox').check();
      await page.getByRole('button', { name: 'Drop' }).click();
      await page.getByText('It will not be sent again.').waitFor();
      await page.getByText('made by a test').waitFor();
      await page.goto(ui('/operations/dead-letters?state=open'));
      await rows.filter({ hasText: 'poison-2' }).getByRole('link').first().click();
      await page.getByRole('button', { name: 'Redrive' }).click();
      await expectFine(page, 'dead-letter-redrive');
      await page.getByRole('checkbox', { name: 'Send this message again' }).check();
      await page.getByRole('button', { name: 'Redrive' }).click();
      await page.getByText('It was sent to its topic again.').waitFor();
      // The redriven message is still unreadable, so there is a new open dead letter.
      const letters = await eventually(async () => {
        const found = await world.api.all<DeadLetter>('/admin/dead-letters');
        return found.length === 3 && found;
      });
      expect(letters.map(({ request_id, state }) => `${request_id} ${state}`).toSorted()).toEqual([
        'poison-1 dropped',
        'poison-2 open',
        'poison-2 redriven',
      ]);
      expect(complaints).toEqual([]);
    });

    it('shows which services respond, also while one is stopped', async () => {
      const { page, complaints } = await as('auditor');
      await page.goto(ui('/operations'));
      await page.getByRole('row', { name: /ledger yes closed/ }).waitFor();
      await page.getByText(/^\d+, \d+\.\d a second$/).waitFor();
      const accounts = world.bank.process('accounts');
      await accounts.stop();
      await page.goto(ui('/operations'));
      await page.getByRole('row', { name: /accounts no/ }).waitFor();
      await page.getByRole('row', { name: /ledger yes closed/ }).waitFor();
      await accounts.restart();
      expect(complaints).toEqual([]);
    });
  });
}
