-- Up Migration

-- Numbers as people say them inside of their country, without its code: found by their last digits. Written when a client is
-- created or changed, and no posting touches them.
create index clients_by_contact_number_end on clients (reverse(contact_number) text_pattern_ops);
create index clients_by_ussd_phone_end on clients (reverse(ussd_phone_number) text_pattern_ops) where ussd_phone_number is not null;
