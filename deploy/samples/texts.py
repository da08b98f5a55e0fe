"""What the sample documents say."""

from typing import Final

INVOICE_SELLER: Final = """
Nordlicht Büromöbel GmbH
Hafenstraße 12 · 20457 Hamburg
Telefon 040 555 01 20 · rechnung@nordlicht.example
"""
INVOICE_BUYER: Final = """
Beispiel & Partner mbB
Buchhaltung
Musterallee 5
80331 München
"""
INVOICE_FACTS: Final = """
Rechnungsnummer: RE-2026-00417
Rechnungsdatum: 12.03.2026
Leistungsdatum: 09.03.2026
Kundennummer: K-20318
Fällig am: 11.04.2026
"""
INVOICE_TERMS: Final = """
Bitte überweisen Sie den Gesamtbetrag bis zum 11.04.2026 ohne Abzug auf das unten genannte Konto.
Bei Zahlung innerhalb von 10 Tagen gewähren wir 2 % Skonto.

IBAN: DE89 3704 0044 0532 0130 00     BIC: COBADEFFXXX
"""
INVOICE_FOOTER: Final = """
Nordlicht Büromöbel GmbH · Geschäftsführung: A. Beispiel · Amtsgericht Hamburg HRB 000000
USt-IdNr.: DE987654328 · Steuernummer: 27/000/00000
"""
LETTER: Final = (
    """
Harbour View Residents' Association
14 Quay Street, Portmouth PM2 7QX

                                                                                      3 February 2026

Brightwater Lifts Ltd
Service Department
Unit 9, Foundry Lane
Portmouth PM4 1AB


Re: Passenger lift, Block B - repeated failures and request for inspection


Dear Sir or Madam,

I am writing on behalf of the residents of Block B. The passenger lift that your company
installed in May 2023 has been out of order on eleven days since the first of December.
On each occasion your engineer restarted the controller and left without finding a cause.

The building houses several residents who cannot use the stairs. During the failure of
18 January, one of them was unable to leave her flat for two days.

Under clause 4.2 of our maintenance agreement dated 15 May 2023, you undertook to
respond to a failure within four hours and to repair it within two working days. In four
of the eleven cases these times were not kept; the dates are listed overleaf.
""",
    """
Dates on which the agreed times were not kept:

    9 December 2025 - response after 7 hours
    22 December 2025 - repair after 4 working days
    6 January 2026 - response after 9 hours
    18 January 2026 - repair after 3 working days

We therefore ask you

    1. to have the lift inspected by an independent expert before 28 February 2026,
    2. to send us the expert's report within one week of the inspection,
    3. to credit the quarterly fee of GBP 1,240.00 for the period in question.

If no date for the inspection has been agreed by 16 February 2026, the Association will
give notice of termination under clause 9.1 and engage another company.

I look forward to your reply.


Yours faithfully,


The Secretary
Harbour View Residents' Association
""",
)
RECEIPT: Final = """
      CORNER CAFE
    27 Station Parade
   Portmouth PM1 3RT
  VAT No GB 000 0000 00

 Date 21/03/2026   13:42
 Receipt No      0048213

 Flat white, 2      7.20
 Orange juice       3.40
 Club sandwich      8.95
 Soup of the day    6.50
 Carrot cake        4.25

 TOTAL GBP         30.30
 incl. VAT 20%      5.05

 Card payment      30.30
 **** **** **** 0000

   Thank you. Goodbye!
"""
CONTRACT_OPENING: Final = (
    (
        'This Maintenance Agreement (the "Agreement") is entered into on 15 January 2026 between Alder Facilities Ltd, '
        '8 Market Row, Portmouth PM1 9ZZ (the "Customer"), and Brightwater Lifts GmbH, Werkstraße 3, 28195 Bremen '
        '(the "Contractor").'
    ),
    "It takes effect on 1 February 2026.",
)
CONTRACT: Final = (
    (
        "1. Services",
        (
            "1.1 The Contractor shall inspect each lift listed in the schedule once a month and keep it in safe order.",
            "1.2 The Contractor shall respond to a failure within four hours and repair it within two working days.",
        ),
    ),
    (
        "2. Obligations of the Customer",
        ("2.1 The Customer shall give the Contractor access to the lifts and report failures without delay.",),
    ),
    ("3. Fees", ("3.1 The Customer shall pay the following fees within 30 days of the invoice date:",)),
    (
        "4. Term and renewal",
        (
            "4.1 This Agreement has an initial term of three years and expires on 31 January 2029.",
            (
                "4.2 It renews for successive periods of one year unless either party gives notice of non-renewal at "
                "least 90 days before the end of the current term."
            ),
        ),
    ),
    (
        "5. Termination",
        (
            (
                "5.1 Either party may terminate this Agreement for material breach that is not cured within 30 days of "
                "written notice."
            ),
        ),
    ),
    (
        "6. Governing law",
        ("6.1 This Agreement is governed by the laws of England and Wales.",),
    ),
)
FEES: Final = (
    ("Service", "Unit", "Fee in GBP"),
    ("Monthly inspection", "per lift", "85.00"),
    ("Emergency call, working hours", "per call", "140.00"),
    ("Emergency call, nights and weekends", "per call", "220.00"),
    ("Annual safety certificate", "per lift", "310.00"),
)
MINUTES: Final = """Minutes of the project meeting, 4 March 2026

Present: project lead, two developers, one tester, the customer's representative.

1. State of the work
The import of old customer records is finished. Of 48,210 records, 312 could not be matched and have been put on a
list for the customer. The new search is ready for test. The export to the accounting system is two weeks late,
because the supplier has changed the format of its interface without notice.

2. Decisions
The export will be built against the new format only; the old one will not be supported. The start of operation
moves from 1 April to 20 April 2026. The customer accepts the new date on condition that the training on 26 March
takes place as planned. The list of unmatched records must be worked through by the customer before 10 April.

3. Risks
If the supplier changes the format again, the date cannot be kept. The project lead will ask the supplier for a
written commitment by Friday. The test environment has been unavailable on three days in February; the customer's
operations team will give a reason and a remedy at the next meeting.

4. Next steps
The developers finish the export by 18 March. The tester sends the report on the search by 11 March. The next
meeting is on 18 March at 10:00.
"""
